"""Masks as boolean tensors. True always means "this query may attend to this key".

>>> causal(3, 3).int().tolist()
[[1, 0, 0], [1, 1, 0], [1, 1, 1]]
"""

import torch

from core.errors import require


def causal(S: int, T: int, offset: int = 0, device=None) -> torch.Tensor:
    """Query i sees key j ≤ i + offset, shape (S, T).

    `offset` is the length of the past, or T − S for the bottom-right alignment.

    >>> causal(2, 5, offset=3).sum(-1).tolist()
    [4, 5]
    """
    queries, keys = _positions(S, T, offset, device)
    return keys <= queries


def reaching(sides, S: int, T: int) -> tuple[int, int]:
    """A window whose sides are no longer than all positions: tensors hold no larger numbers.

    >>> reaching((10**30, -1), 3, 4)
    (7, -1)
    """
    left, right = sides
    return min(left, S + T), min(right, S + T)


def window(S: int, T: int, left: int, right: int, offset: int = 0, device=None) -> torch.Tensor:
    """Query i sees keys from i − left to i + right, both included; −1 leaves a side open.

    >>> window(4, 4, 1, 0).int().tolist()
    [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
    """
    left, right = reaching((left, right), S, T)
    queries, keys = _positions(S, T, offset, device)
    seen = torch.ones(S, T, dtype=torch.bool, device=device)
    if right >= 0:
        seen = keys <= queries + right
    return seen & (keys >= queries - left) if left >= 0 else seen


def _positions(S, T, offset, device):
    """Positions of queries (S, 1) and keys (T), in the numbering of the keys.

    They are compared rather than cut out by tril and triu, which wake all threads for the smallest
    matrix: on a busy machine that is a wait of tens of milliseconds.
    """
    queries = torch.arange(S, device=device)[:, None] + offset
    return queries, torch.arange(T, device=device)


def padding(lengths, T: int, device=None) -> torch.Tensor:
    """Sample b sees its first `lengths[b]` keys, shape (B, 1, 1, T).

    >>> padding([2, 0], 3)[:, 0, 0].int().tolist()
    [[1, 1, 0], [0, 0, 0]]
    """
    lengths = torch.as_tensor(lengths, device=device)
    ok = lengths.ndim == 1 and not lengths.is_floating_point()
    ok = ok and bool(((lengths >= 0) & (lengths <= T)).all())
    require(ok, "lengths", got=lengths.tolist(), T=T, B=len(lengths) if lengths.ndim else 1)
    return (torch.arange(T, device=device) < lengths[:, None])[:, None, None, :]


def from_multihead(mask: torch.Tensor) -> torch.Tensor:
    """Turn a boolean mask of `nn.MultiheadAttention` (True = hidden) into ours (True = visible).

    The same call turns ours into theirs: the two conventions are each other's opposite.

    >>> from_multihead(torch.tensor([[False, True]])).tolist()
    [[True, False]]
    """
    require(mask.dtype == torch.bool, "mask-type", got=mask.dtype)
    return ~mask
