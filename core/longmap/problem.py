"""What a long map is asked for: the tensors, checked, which keys a query sees, and the tiles.

Causal masks and windows let query i see one run of keys, from `low` to `high` (excluded); this is
all that the rest of the engine knows of masks.

>>> import torch
>>> p = problem(torch.zeros(5, 2), torch.zeros(7, 2), tiles=2, causal=True, window=(1, -1))
>>> p.seen(torch.arange(5))
(tensor([0, 0, 1, 2, 3]), tensor([1, 2, 3, 4, 5]))
>>> p.rows, p.columns
(Tiles(start=0, stop=5, size=3), Tiles(start=0, stop=7, size=4))
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import torch

from core import checks, masks
from core.config import check_window
from core.errors import require
from core.longmap.keys import Keys, lengths

POOLS = ("max", "mean", "sum")
MOST_TILES = 8192


class Tiles(NamedTuple):
    """Positions `start` to `stop` (excluded) cut into blocks of `size`, the last one maybe shorter.

    >>> Tiles(2, 7, 2).count, Tiles(2, 7, 2).edges()
    (3, tensor([2, 4, 6, 7]))
    """

    start: int
    stop: int
    size: int

    @property
    def count(self) -> int:
        return -(-(self.stop - self.start) // self.size)

    def edges(self) -> torch.Tensor:
        """Where each block begins, and where the last one ends: int64 (count + 1)."""
        inner = torch.arange(self.start, self.stop, self.size)
        return torch.cat([inner, torch.tensor([self.stop])])


class Asked(NamedTuple):
    """Some queries of a head, on the device that answers them.

    `low`, `high` (n): which keys each one sees. `first`: the position of the first if they follow
    one another, else None. `bound`: their scores are no further from 0, in powers of 2.
    """

    q: torch.Tensor
    low: torch.Tensor
    high: torch.Tensor
    first: int | None
    bound: float


def cut(start: int, stop: int, tiles: int) -> Tiles:
    """At most `tiles` blocks of equal size.

    >>> cut(0, 10, 4)
    Tiles(start=0, stop=10, size=3)
    """
    return Tiles(start, stop, -(-(stop - start) // min(tiles, stop - start)))


@dataclass(frozen=True, eq=False)
class Problem:
    """Queries (h, S, d), keys (g, T, d) and what is asked about them."""

    q: torch.Tensor
    k: torch.Tensor
    heads: bool  # whether they came with an axis of heads
    tiles: int
    pool: str
    causal: bool | str
    window: tuple[int, int]
    scale: float
    softcap: float | None
    _keys: dict = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def h(self) -> int:
        return self.q.shape[0]

    @property
    def S(self) -> int:
        return self.q.shape[1]

    @property
    def T(self) -> int:
        return self.k.shape[1]

    @property
    def rows(self) -> Tiles:
        return cut(0, self.S, self.tiles)

    @property
    def columns(self) -> Tiles:
        return cut(0, self.T, self.tiles)

    @property
    def masked(self) -> bool:
        return bool(self.causal) or self.window != (-1, -1)

    def options(self) -> tuple:
        """All but the tensors."""
        sizes = (tuple(self.q.shape), tuple(self.k.shape), self.q.dtype, self.heads)
        limits = (self.causal, self.window, self.scale, self.softcap)
        return (*sizes, *limits, self.tiles, self.pool)

    def seen(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The first key that each of these queries sees, and the one after the last."""
        left, right = self.window
        at = rows + (self.T - self.S if self.causal == "bottom-right" else 0)
        low = (at - left if left >= 0 else torch.zeros_like(at)).clamp(0, self.T)
        high = at + right + 1 if right >= 0 else torch.full_like(at, self.T)
        high = torch.minimum(high, at + 1) if self.causal else high
        return low, torch.maximum(high.clamp(0, self.T), low)

    @property
    def band(self) -> tuple[float, float]:
        """Query i sees keys from i + band[0] to i + band[1], both included, that there are."""
        left, right = self.window
        off = self.T - self.S if self.causal == "bottom-right" else 0
        last = [off + side for side in (right, 0) if side >= 0][: 2 if self.causal else 1]
        last = last if right >= 0 or self.causal else [math.inf]
        return off - left if left >= 0 else -math.inf, min(last)

    @cached_property
    def lengths(self) -> torch.Tensor:
        """How long each query is, float32 (h, S) on the CPU; NaN counts as 0."""
        return lengths(self.q).cpu()

    def asked(self, head: int, at: range | torch.Tensor, device) -> Asked:
        """The queries at these positions."""
        run = isinstance(at, range)
        index = slice(at.start, at.stop) if run else at
        place = index if run else at.to(self.q.device)
        q = self.q[head, place].to(device)
        seen = self.seen(torch.arange(at.start, at.stop) if run else at)
        low, high = (x.to(device) for x in seen)
        longest = float(self.lengths[head, index].max())
        return Asked(
            q, low, high, at.start if run else None, self.keys(head, device).bound(longest)
        )

    def keys(self, head: int, device: torch.device | None = None) -> Keys:
        """The keys that a head reads, made ready once per device."""
        group, device = head * self.k.shape[0] // self.h, device or self.k.device
        with self._lock:
            if (group, device) not in self._keys:
                self._keys[group, device] = Keys(self.k[group].to(device), self.scale, self.softcap)
            return self._keys[group, device]


def check_tiles(tiles, pool) -> None:
    """A number of tiles that can be held, and a way of pooling that there is."""
    checks.count("tiles", tiles)
    require(tiles <= MOST_TILES, "size-most", name="tiles", got=tiles, most=MOST_TILES)
    ok = isinstance(pool, str) and pool in POOLS
    require(ok, "unknown-choice", name="pool", got=repr(pool)[:40], known=", ".join(POOLS))


def problem(
    q, k, *, tiles=512, pool="max", causal=False, window=None, scale=None, softcap=None
) -> Problem:
    """Check all that `attention_map` takes. Raises InputError."""
    named = checks.tensors(q=q, k=k)
    for name in ("q", "k"):
        require(name in named, "not-a-tensor", name=name, got="NoneType")
    q, k = named["q"], named["k"]
    require(q.ndim == k.ndim and q.ndim in (2, 3), "rank-map", q=q.ndim, k=k.ndim)
    checks.floating(named)
    same = q.shape[-1] == k.shape[-1]
    require(same, "same-width", left="q", right="k", got=q.shape[-1], wanted=k.shape[-1])
    heads = q.ndim == 3
    q, k = (q, k) if heads else (q[None], k[None])
    require(q.shape[0] % k.shape[0] == 0, "groups-divide", h=q.shape[0], g=k.shape[0])
    check_tiles(tiles, pool)
    known = isinstance(causal, bool | int | str) and causal in (False, True, "bottom-right")
    require(known, "causal", got=repr(causal)[:40])
    check_window(window)
    factor = q.shape[-1] ** -0.5 if scale is None else checks.number("scale", scale, q.dtype)
    cap = None if softcap is None else checks.number("softcap", softcap, q.dtype)
    require(cap is None or cap > 0, "softcap", got=cap)
    q, k = (x.cpu() if x.device.type == "mps" else x for x in (q, k))  # no float64 there
    window = masks.reaching(window or (-1, -1), q.shape[1], k.shape[1])
    return Problem(q, k, heads, tiles, pool, causal, window, factor, cap)
