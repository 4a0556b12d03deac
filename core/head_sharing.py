"""MHA, GQA, MQA: which key/value head a query head reads, what repeating it costs, what is cached.

>>> head_map(h=4, g=2)
(0, 0, 1, 1)
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from core.config import AttentionConfig

MODELS = {
    "transformer": {"H": 512, "h": 8},
    "bert-base": {"H": 768, "h": 12},
    "gpt2-small": {"H": 768, "h": 12},
}


def head_map(h: int, g: int) -> tuple[int, ...]:
    """Per query head the key/value head it reads, told by torch's own `repeat_interleave`."""
    return tuple(torch.arange(g).repeat_interleave(h // g).tolist())


def name(h: int, g: int) -> str:
    """MHA, GQA or MQA. With one query head there is nothing to share.

    >>> name(8, 8), name(8, 2), name(8, 1)
    ('MHA', 'GQA', 'MQA')
    """
    return "MHA" if g == h else "MQA" if g == 1 else "GQA"


class Held(NamedTuple):
    """One way to hold the keys: the line that makes it, and what torch reports of the tensor."""

    code: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    bytes: int  # of its storage
    shares: bool  # the storage of K
    same: bool  # the same numbers as repeat_interleave gives, element by element


def repeats(h: int, g: int, T: int, d_k: int, dtype: str = "float32") -> list[Held]:
    """K (g, T, d_k) itself, expanded as a view, the view reshaped to h heads, and repeated.

    >>> [(held.strides, held.bytes) for held in repeats(h=4, g=2, T=3, d_k=4)[:2]]
    [((12, 4, 1), 96), ((12, 0, 4, 1), 96)]
    """
    r = h // g
    K = torch.arange(float(g * T * d_k)).to(getattr(torch, dtype)).view(g, T, d_k)
    wide = K[:, None].expand(g, r, T, d_k)
    repeated = K.repeat_interleave(r, dim=0)
    made = {
        "K": K,
        "K[:, None].expand(g, h // g, T, d_k)": wide,
        "K[:, None].expand(g, h // g, T, d_k).reshape(h, T, d_k)": wide.reshape(h, T, d_k),
        "K.repeat_interleave(h // g, dim=0)": repeated,
    }
    return [_held(code, tensor, K, repeated) for code, tensor in made.items()]


def _held(code, tensor, K, repeated) -> Held:
    storage = tensor.untyped_storage()
    same = tensor.numel() == repeated.numel() and torch.equal(
        tensor.reshape(repeated.shape), repeated
    )
    return Held(
        code, tuple(tensor.shape), tensor.stride(), storage.nbytes(),
        storage.data_ptr() == K.untyped_storage().data_ptr(), same,
    )  # fmt: skip


class Budget(NamedTuple):
    """What one layer needs with g key/value heads, counted on tensors without memory (meta).

    Parameters: W_Q and W_O together, W_K and W_V together, no biases. `cache_bytes`: keys and
    values of one token of one layer.
    """

    g: int
    name: str
    query_parameters: int
    shared_parameters: int
    cache_bytes: int

    @property
    def parameters(self) -> int:
        return self.query_parameters + self.shared_parameters


def budget(config: AttentionConfig) -> Budget:
    """Parameters and cache of one layer.

    >>> found = budget(AttentionConfig(H=768, h=12, dtype="float16"))
    >>> found.parameters, found.cache_bytes  # 4·768², and 12 heads · (64 + 64) · 2 bytes
    (2359296, 3072)
    """

    def empty(*shape):
        return torch.empty(*shape, dtype=getattr(torch, config.dtype), device="meta")

    H, h, g, d_k, d_v = config.H, config.h, config.g, config.d_k, config.d_v
    query = empty(H, h * d_k).numel() + empty(h * d_v, H).numel()
    shared = empty(H, g * d_k).numel() + empty(H, g * d_v).numel()
    cache = (empty(g, 1, d_k), empty(g, 1, d_v))
    held = sum(tensor.numel() * tensor.element_size() for tensor in cache)
    return Budget(g, name(h, g), query, shared, held)


def budgets(config: AttentionConfig) -> list[Budget]:
    """The budget for every g that divides h, from MHA (g = h) down to MQA (g = 1)."""
    shared = [g for g in range(config.h, 0, -1) if config.h % g == 0]
    return [budget(config.changed(g=g)) for g in shared]


def one_head(config: AttentionConfig) -> int:
    """Parameters of one head's W_Q, W_K and W_V.

    >>> one_head(AttentionConfig(H=768, h=12))
    147456
    """
    alone = config.changed(h=1, g=1, d_k=config.d_k)
    return sum(
        torch.empty(alone.H, width, device="meta").numel()
        for width in (alone.d_k, alone.d_k, alone.d_v)
    )
