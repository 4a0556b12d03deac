"""The one pass: scores of a block of queries against all keys, pooled and summed as they come.

Only a piece of a few hundred keys stands in memory at any time. Scores are base-2 logarithms here
(see `keys`). The largest weight of a tile is 2 to the power of its largest score over the row's
sum, so the maximum runs over raw scores; mass needs the powers themselves, which are at hand.

The cores share one interpreter, so the loop over pieces makes as few calls as it can: which keys a
piece holds (`layout`) and where its results go (`_Desk`) is prepared once and used again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch

from core.longmap.keys import NARROW, WIDE, Keys

DESKS, VEILS = 4, 8  # that a worker keeps prepared
WOVEN, FEW = 64, 128  # keys of a tile at most, and tiles at least, to weave
DEEP = -1e5  # stands for −∞ where it is multiplied with a power that is 0


class Piece(NamedTuple):
    """Keys `start` to `stop`: tiles `first` to `last` (excluded), or a part of one tile."""

    start: int
    stop: int
    first: int
    last: int


@dataclass(frozen=True, eq=False)
class Layout:
    """Tiles of keys as pieces. Where a tile is wider than a piece it is cut into `parts`, and
    `first` and `last` of a piece count parts, not tiles."""

    start: int
    pieces: tuple[Piece, ...]
    count: int
    whole: int  # tiles that are not cut short
    size: int
    parts: int
    width: int


@lru_cache(maxsize=64)
def layout(tiles, width: int) -> Layout:
    """Pieces of at most `width` keys over `tiles` (`problem.Tiles`).

    >>> from core.longmap.problem import Tiles
    >>> [tuple(p) for p in layout(Tiles(0, 9, 2), 5).pieces]    # the last tile is shorter
    [(0, 4, 0, 2), (4, 8, 2, 4), (8, 9, 4, 5)]
    >>> [tuple(p) for p in layout(Tiles(0, 9, 6), 4).pieces]    # each tile in two parts
    [(0, 3, 0, 1), (3, 6, 1, 2), (6, 9, 2, 3)]
    """
    start, stop, size = tiles
    parts = -(-size // width)
    step = size if parts == 1 else -(-size // parts)
    across = max(1, width // step) if parts == 1 else 1
    pieces, at, slot = [], start, 0
    whole = start + (stop - start) // size * size
    while at < stop:
        if parts == 1:
            end = min(at + across * size, whole) if at < whole else stop
            used = -(-(end - at) // size)
        else:
            tile = (at - start) // size
            end = min(at + step, start + (tile + 1) * size, stop)
            slot, used = tile * parts + (at - start - tile * size) // step, 1
        pieces.append(Piece(at, end, slot, slot + used))
        at, slot = end, slot + used
    return Layout(start, tuple(pieces), tiles.count, (stop - start) // size, size, parts, width)


@dataclass
class Swept:
    """What one pass found for n queries, scores in powers of 2.

    `largest` (n, C): the largest score in each tile, −∞ where none is seen. `mass` (n, C): the sum
    of powers in each tile, None unless asked. Both may be overwritten by the next pass. `total`
    (n), float64: the sum of powers of the row. `moment` (n), float64: Σ power·score. `shift` (n):
    what was taken off the scores.
    """

    largest: torch.Tensor
    mass: torch.Tensor | None
    total: torch.Tensor | None
    moment: torch.Tensor | None
    shift: torch.Tensor | None


class Scratch:
    """What one worker uses again and again: buffers, and the desks that stand on them."""

    def __init__(self, device):
        self.device = torch.device(device)
        self._held, self._desks, self._veils = {}, {}, {}

    def buffer(self, name: str, rows: int, columns: int, dtype) -> torch.Tensor:
        """Uninitialised (rows, columns), the same memory for the same name."""
        size = rows * columns
        held = self._held.get((name, dtype))
        if held is None or held.numel() < size:
            self._desks.clear()
            held = torch.empty(size, dtype=dtype, device=self.device)
            self._held[name, dtype] = held
        return held[:size].view(rows, columns)

    def desk(self, plan: Layout, n: int, dtype, mass: bool, moment: bool) -> _Desk:
        """Where results of n queries go, made ready. Without moments, powers replace scores."""
        width = max(plan.width, max(piece.stop - piece.start for piece in plan.pieces))
        s = self.buffer("scores", n, width, dtype)
        e = self.buffer("powers", n, width, dtype) if moment else s
        key = (plan, n, dtype, mass, moment)
        if key not in self._desks:
            if len(self._desks) >= DESKS:
                self._desks.clear()
            self._desks[key] = _Desk(plan, n, s.view(-1), e.view(-1), mass)
        return self._desks[key]

    def veil(self, band, ahead: int, like: torch.Tensor) -> torch.Tensor:
        """0 where consecutive queries see keys that begin `ahead` of the first, else −∞."""
        key = (band, ahead, like.shape, like.dtype)
        if key not in self._veils:
            if len(self._veils) >= VEILS:
                self._veils.clear()
            n, width = like.shape
            at = torch.arange(ahead, ahead + width, device=self.device)
            at = at - torch.arange(n, device=self.device)[:, None]
            hidden = (at < band[0]) | (at > band[1])
            self._veils[key] = torch.zeros_like(like).masked_fill_(hidden, -math.inf)
        return self._veils[key]


class _Step(NamedTuple):
    """Views of one piece: its scores and powers, by tiles too, and where its results go."""

    s: torch.Tensor
    e: torch.Tensor
    tiled: torch.Tensor | None
    powers: torch.Tensor | None
    top: torch.Tensor
    mass: torch.Tensor | None
    total: torch.Tensor
    moment: torch.Tensor


class _Desk:
    def __init__(self, plan: Layout, n: int, s, e, mass: bool):
        self.plan, slots, many = plan, plan.count * plan.parts, len(plan.pieces)
        self.tops, self.masses = s.new_empty(n, slots), s.new_empty(n, slots) if mass else None
        self.woven = plan.size * -(-plan.whole // plan.width) if plan.size <= WOVEN else 0
        self.totals, self.moments = (s.new_empty(many + self.woven, n) for _ in range(2))
        self.s, self.e = s, e
        self.steps = []
        for number, piece in enumerate(plan.pieces):
            wide, tiles = piece.stop - piece.start, piece.last - piece.first
            scores, powers = (x[: n * wide].view(n, wide) for x in (s, e))
            by_tile = (n, tiles, wide // tiles)
            self.steps.append(
                _Step(
                    scores, powers, scores.view(by_tile), powers.view(by_tile),
                    self.tops[:, piece.first : piece.last],
                    self.masses[:, piece.first : piece.last] if mass else None,
                    self.totals[number], self.moments[number],
                )
            )  # fmt: skip

    def clear(self) -> None:
        self.tops.fill_(-math.inf)
        for results in (self.masses, self.totals, self.moments):
            if results is not None:
                results.zero_()

    def by_tile(self, found: torch.Tensor, how) -> torch.Tensor:
        """Tiles from their parts. Of tiles in one part these are the desk's own numbers."""
        if self.plan.parts == 1:
            return found
        return how(found.view(len(found), self.plan.count, self.plan.parts), -1)


def sweep(
    keys: Keys,
    asked,
    tiles,
    scratch,
    *,
    band=None,
    width=512,
    mass=False,
    total=True,
    moment=False,
) -> Swept:
    """Queries (`problem.Asked`) over key tiles. `band`: what each sees if they are consecutive."""
    wide = not asked.bound <= NARROW  # also where the bound is not a number
    q = (asked.q.double() if wide else asked.q.float()).contiguous()
    band = band if asked.first is not None and keys.finite else None
    veil = _Veil(asked, band, scratch)
    shift, plan = None, layout(tiles, width)
    if not min(asked.bound, keys.cap or asked.bound) <= WIDE:
        found = _pass(keys, q, veil, plan, scratch, None, False, False, False)
        shift = found.largest.amax(-1)
        shift = torch.where(shift == -math.inf, 0.0, shift)
    return _pass(keys, q, veil, plan, scratch, shift, mass, total, moment)


def _pass(
    keys: Keys, q, veil: _Veil, plan: Layout, scratch: Scratch, shift, mass, total, moment
) -> Swept:
    desk = scratch.desk(plan, len(q), q.dtype, mass, moment)
    desk.clear()
    views = keys.views(plan, q.dtype == torch.float64)
    begin, inner, outer, end = veil.begin, veil.inner, veil.outer, veil.end
    cap, off, powers = keys.cap, None if shift is None else shift[:, None], mass or total
    first, last = _weave(keys, q, veil, desk, off, mass, total, moment)
    for piece, k, step in zip(plan.pieces, views, desk.steps, strict=True):
        start, stop = piece.start, piece.stop
        if start >= end or stop <= begin or first <= start < last:
            continue
        s, e, tiled, by_tile, top, mass_out, total_out, moment_out = step
        torch.mm(q, k, out=s)
        if cap is not None:
            s.tanh_().mul_(cap)
        masked = start < inner or stop > outer
        if masked:
            veil.over(s, start)
        if off is not None:
            s -= off
        torch.amax(tiled, -1, out=top)
        if powers:
            torch.exp2(s, out=e)
        if mass:
            torch.sum(by_tile, -1, out=mass_out)
        if total:
            torch.sum(e, -1, out=total_out)
        if moment:
            if masked:
                s.clamp_min_(DEEP)  # 0·−∞ is nothing, not NaN
            torch.mul(e, s, out=e)
            torch.sum(e, -1, out=moment_out)
    wide = {"dim": 0, "dtype": torch.float64}
    return Swept(
        desk.by_tile(desk.tops, torch.amax),
        desk.by_tile(desk.masses, torch.sum) if mass else None,
        desk.totals.sum(**wide) if total else None,
        desk.moments.sum(**wide) if moment else None,
        shift,
    )


def _weave(keys: Keys, q, veil: _Veil, desk: _Desk, off, mass, total, moment) -> tuple[int, int]:
    """The pass over whole tiles of few keys that all queries see: which keys these were.

    The n-th keys of many tiles are taken together. Pooling is then the maximum of two matrices,
    cell by cell, which is faster than the maximum over runs of a few numbers.
    """
    plan = desk.plan
    seen = [p for p in plan.pieces if p.start >= veil.inner and p.stop <= veil.outer]
    seen = [p for p in seen if p.last <= plan.whole] if desk.woven else []
    if not seen or seen[-1].last - seen[0].first < FEW:
        return 0, 0
    start, stop, number = seen[0].first, seen[-1].last, len(plan.pieces)
    for first in range(start, stop, plan.width):
        last = min(first + plan.width, stop)
        shape = (len(q), last - first)
        s, e = (x[: shape[0] * shape[1]].view(shape) for x in (desk.s, desk.e))
        top = desk.tops[:, first:last]
        masses = desk.masses[:, first:last] if mass else None
        for k in keys.woven(plan, first, last, q.dtype == torch.float64):
            torch.mm(q, k, out=s)
            if keys.cap is not None:
                s.tanh_().mul_(keys.cap)
            if off is not None:
                s -= off
            torch.maximum(top, s, out=top)
            if mass or total:
                torch.exp2(s, out=e)
            if mass:
                masses += e
            if total:
                torch.sum(e, -1, out=desk.totals[number])
            if moment:
                torch.mul(e, s, out=e)
                torch.sum(e, -1, out=desk.moments[number])
            number += 1
    return seen[0].start, seen[-1].stop


class _Veil:
    """What a block of queries does not see: all before `begin`, nothing from `inner` to `outer`."""

    def __init__(self, asked, band, scratch: Scratch):
        self.low, self.high, self.first = asked.low, asked.high, asked.first
        self.band, self.scratch = band, scratch
        self.begin, self.end = int(self.low.min()), int(self.high.max())
        self.inner, self.outer = int(self.low.max()), int(self.high.min())

    def over(self, s: torch.Tensor, start: int) -> None:
        """−∞ where a key from `start` on is not seen."""
        if self.band is None:
            hide(s, self.low, self.high, start)
        else:
            s += self.scratch.veil(self.band, start - self.first, s)


def hide(s: torch.Tensor, low, high, start: int) -> torch.Tensor:
    """−∞ before key `low` and from key `high` on, of each query, in place.

    >>> hide(torch.zeros(1, 4), torch.tensor([6]), torch.tensor([8]), 5)
    tensor([[-inf, 0., 0., -inf]])
    """
    at = torch.arange(start, start + s.shape[1], device=s.device)
    return s.masked_fill_((at < low[:, None]) | (at >= high[:, None]), -math.inf)
