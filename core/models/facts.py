"""What each head does, in numbers: how wide it looks, and at what.

All are means over queries. Queries that see one key only are left out where they can but look
there (entropy, largest weight), since a causal mask gives the first of them no choice.

>>> uniform = torch.full((1, 4, 4), 1 / 4)
>>> round(measure(uniform, special=[0])[0].entropy, 3)
1.0
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

UNIFORM = 0.95  # of the largest possible entropy: at least this is "near-uniform"
ONE_HOT = 0.9  # mean of the largest weight: at least this is "near-one-hot"
TWIN = 0.05  # mean share of weight that lies elsewhere: at most this is "does the same"
SINK = 0.5  # mean share on the first or special tokens: at least this is "rests there"
ROWS = 32  # queries at which heads are compared with one another


@dataclass(frozen=True)
class Facts:
    """Of one head. `entropy`: share of its maximum. `largest`: the largest weight of a query.
    `first`, `special`, `itself`, `previous`, `following`: shares of weight on those keys; None in
    cross-attention where a query has no own place among the keys. `twin`: (call, head) of an
    earlier head that does the same, `apart` how much of the weight lies elsewhere there."""

    entropy: float
    largest: float
    first: float
    special: float
    itself: float | None
    previous: float | None
    following: float | None
    twin: tuple[int, int] | None = None
    apart: float | None = None

    @property
    def uniform(self) -> bool:
        return self.entropy >= UNIFORM

    @property
    def one_hot(self) -> bool:
        return self.largest >= ONE_HOT

    @property
    def sink(self) -> bool:
        return max(self.first, self.special) >= SINK


def measure(weights, seen=None, *, special=(), cross: bool = False) -> list[Facts]:
    """Facts of each head of weights (h, S, T). `seen`: True = may attend, broadcast to them;
    without it, all. `special`: positions of special keys."""
    weights = weights.float()
    h, S, T = weights.shape
    # Not the weights above 0: a sharp softmax underflows to 0 on keys that it may well see.
    allowed = weights.new_ones(1, dtype=torch.bool) if seen is None else seen
    allowed = allowed.expand(h, S, T)
    room = allowed.sum(-1)  # (h, S)
    free = room > 1
    entropy = torch.special.entr(weights).sum(-1)
    share = torch.where(free, entropy / room.clamp_min(2).log(), 1.0)
    largest = weights.amax(-1)
    on = {
        "entropy": _mean(share, free),
        "largest": _mean(largest, free),
        "first": weights[:, :, 0].mean(-1),
        "special": weights[:, :, list(special)].sum(-1).mean(-1) if len(special) else None,
    }
    for name, offset in (("itself", 0), ("previous", -1), ("following", 1)):
        on[name] = None if cross else _diagonal(weights, offset)
    numbers = {name: [None] * h if x is None else x.tolist() for name, x in on.items()}
    if not len(special):
        numbers["special"] = [0.0] * h
    return [Facts(**{name: column[i] for name, column in numbers.items()}) for i in range(h)]


def _mean(x, where):
    """Mean over the last axis of what `where` marks; of all where it marks nothing."""
    count = where.sum(-1)
    chosen = (x * where).sum(-1) / count.clamp_min(1)
    return torch.where(count > 0, chosen, x.mean(-1))


def _diagonal(weights, offset):
    """Mean weight on the key `offset` places after the query, of queries that have such a key."""
    line = weights.diagonal(offset, -2, -1)
    return line.mean(-1) if line.shape[-1] else weights.new_zeros(weights.shape[0])


def twins(stacks, kinds=None) -> dict[tuple[int, int], tuple[tuple[int, int], float]]:
    """For each head that does what an earlier one does: that head, and how far they are apart.

    `stacks`: one tensor (h, S, T) per call, `kinds` what each call is (default: all the same).
    Only calls of one kind and of equal (S, T) are compared, at ROWS queries at most. Apart: half
    the sum of differences of a row, 0 (same) to 1, mean over rows.
    """
    found = {}
    groups: dict[tuple, list[int]] = {}
    for place, weights in enumerate(stacks):
        kind = kinds[place] if kinds else ""
        groups.setdefault((*weights.shape[1:], kind), []).append(place)
    for (S, _T, _kind), places in groups.items():
        rows = torch.linspace(0, S - 1, min(S, ROWS)).round().long().unique()
        names = [(c, i) for c in places for i in range(len(stacks[c]))]
        flat = torch.cat([stacks[c][:, rows].flatten(1).float() for c in places])
        apart = torch.cdist(flat, flat, p=1) / (2 * len(rows))
        apart += torch.ones_like(apart).triu() * 9  # only earlier heads count
        nearest, which = apart.min(-1)
        for i, (by, j) in enumerate(zip(nearest.tolist(), which.tolist(), strict=True)):
            if by <= TWIN:
                found[names[i]] = (names[j], by)
    return found
