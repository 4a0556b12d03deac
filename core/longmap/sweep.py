"""The one pass: scores of a block of queries against all keys, pooled and summed as they come.

Only a piece of a few hundred keys stands in memory at any time. Scores are base-2 logarithms here
(see `keys`). The largest weight of a tile is 2 to the power of its largest score over the row's
sum, so the maximum runs over raw scores; mass needs the powers themselves, which are at hand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch

from core.longmap.keys import NARROW, WIDE, Keys


class Piece(NamedTuple):
    """Keys `start` to `stop`, all of tiles `first` to `last` (excluded) or `part` of one tile."""

    start: int
    stop: int
    first: int
    last: int
    part: bool
    masked: bool


@dataclass
class Swept:
    """What one pass found for n queries, scores in powers of 2.

    `largest` (n, C): the largest score in each tile, −∞ where none is seen. `mass` (n, C): the sum
    of powers in each tile, None unless asked. `total` (n), float64: the sum of powers of the row.
    `moment` (n), float64: Σ power·score. `shift` (n): what was taken off the scores.
    """

    largest: torch.Tensor
    mass: torch.Tensor | None
    total: torch.Tensor | None
    moment: torch.Tensor | None
    shift: torch.Tensor | None


class Scratch:
    """Buffers that are used again by every piece of one worker."""

    def __init__(self, device):
        self.device, self.held = device, {}

    def __call__(self, name: str, rows: int, columns: int, dtype) -> torch.Tensor:
        size = rows * columns
        held = self.held.get((name, dtype))
        if held is None or held.numel() < size:
            held = torch.empty(size, dtype=dtype, device=self.device)
            self.held[name, dtype] = held
        return held[:size].view(rows, columns)


def pieces(tiles, low: torch.Tensor, high: torch.Tensor, width: int):
    """The pieces of at most about `width` keys that hold all that is seen, within `tiles`.

    >>> from core.longmap.problem import Tiles
    >>> [(p.start, p.stop, p.masked)
    ...  for p in pieces(Tiles(0, 10, 2), torch.tensor([0, 0]), torch.tensor([5, 6]), 4)]
    [(0, 4, False), (4, 6, True)]
    """
    begin, end = max(int(low.min()), tiles.start), min(int(high.max()), tiles.stop)
    if begin >= end:
        return
    inner, outer = int(low.max()), int(high.min())
    size, across = tiles.size, max(1, width // tiles.size)
    first, last = (begin - tiles.start) // size, -(-(end - tiles.start) // size)
    for tile in range(first, last, across):
        a = tiles.start + tile * size
        b = min(tiles.start + min(tile + across, last) * size, tiles.stop)
        stop = tile + -(-(b - a) // size)
        short = (b - a) % size
        if short and b - a > size:  # the last tile is shorter: it goes alone
            yield Piece(a, b - short, tile, stop - 1, False, a < inner or b - short > outer)
            a, tile = b - short, stop - 1
        parts = -(-(b - a) // max(width, 1)) if stop - tile == 1 else 1
        step = -(-(b - a) // parts)
        for c in range(a, b, step):
            d = min(c + step, b)
            yield Piece(c, d, tile, stop, parts > 1, c < inner or d > outer)


def sweep(
    keys: Keys, q, low, high, tiles, scratch, *, width=512, mass=False, total=True, moment=True
) -> Swept:
    """Queries q (n, d) that see keys `low` to `high` (n) each, over the key tiles `tiles`."""
    bound = keys.bound(q)
    wide = not bound <= NARROW  # also where the bound is not a number
    q = (q.double() if wide else q.float()).contiguous()
    shift = None
    if not min(bound, keys.cap or bound) <= WIDE:
        found = _pass(keys, q, low, high, tiles, scratch, None, width, False, False, False)
        shift = found.largest.amax(-1)
        shift = torch.where(shift == -math.inf, 0.0, shift)
    return _pass(keys, q, low, high, tiles, scratch, shift, width, mass, total, moment)


def _pass(keys, q, low, high, tiles, scratch, shift, width, mass, total, moment) -> Swept:
    n, count, place = len(q), tiles.count, {"dtype": q.dtype, "device": q.device}
    k = keys.wide if q.dtype == torch.float64 else keys.narrow
    largest = torch.full((n, count), -math.inf, **place)
    masses = torch.zeros((n, count), **place) if mass else None
    sums = torch.zeros(n, dtype=torch.float64, device=q.device) if total else None
    moments = torch.zeros_like(sums) if moment and total else None
    for piece in pieces(tiles, low, high, width):
        s = scratch("scores", n, piece.stop - piece.start, q.dtype)
        scores(keys, k, q, piece.start, piece.stop, out=s)
        if piece.masked:
            hide(s, low, high, piece.start)
        if shift is not None:
            s -= shift[:, None]
        _largest(s, piece, tiles.size, largest)
        if not (mass or total):
            continue
        e = torch.exp2(s, out=scratch("powers", *s.shape, q.dtype))
        if mass:
            _mass(e, piece, tiles.size, masses)
        if total:
            sums += e.sum(-1)
        if moments is not None:
            s = s.clamp_min_(-1e5) if piece.masked else s  # 0·−∞ is nothing, not NaN
            moments += e.mul_(s).sum(-1)
    return Swept(largest, masses, sums, moments, shift)


def scores(keys: Keys, k, q, start, stop, out=None) -> torch.Tensor:
    """Scores of queries q against keys `start` to `stop`, capped, in powers of 2."""
    out = torch.mm(q, k[start:stop].T, out=out)
    return out if keys.cap is None else out.tanh_().mul_(keys.cap)


def hide(s: torch.Tensor, low, high, start: int) -> torch.Tensor:
    """−∞ where a query does not see the key, in place."""
    at = torch.arange(start, start + s.shape[1], device=s.device)
    return s.masked_fill_((at < low[:, None]) | (at >= high[:, None]), -math.inf)


def _largest(s, piece: Piece, size: int, out) -> None:
    if piece.last - piece.first == 1:
        found = out[:, piece.first]
        torch.maximum(found, s.amax(-1), out=found)
    elif size == 1:
        out[:, piece.first : piece.last] = s
    else:
        tiled = s.view(len(s), -1, size)
        torch.amax(tiled, -1, out=out[:, piece.first : piece.last])


def _mass(e, piece: Piece, size: int, out) -> None:
    if piece.last - piece.first == 1:
        out[:, piece.first] += e.sum(-1)
    else:
        torch.sum(e.view(len(e), -1, size), -1, out=out[:, piece.first : piece.last])
