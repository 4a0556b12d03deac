"""What is known of a map: its tiles and row facts, and every finer view made from them on demand.

>>> import torch
>>> from core.longmap import attention_map
>>> m = attention_map(torch.eye(3), torch.eye(3), causal=True, scale=0.0)
>>> m.entropy.exp(), m.largest
(tensor([1.0000, 2.0000, 3.0000], dtype=torch.float64), tensor([1.0000, 0.5000, 0.3333]))
>>> m.strongest(2, count=2)
(tensor([0, 1]), tensor([0.3333, 0.3333]))
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass

import torch

from core import checks
from core.errors import InputError, Notice, require
from core.longmap.blocks import Block, block_size, overflow, row_facts
from core.longmap.crew import work
from core.longmap.problem import Problem, check_tiles, cut
from core.longmap.rows import Rows
from core.longmap.sweep import hide

VIEW = 1 << 24  # cells of a rectangle that may stand in memory at full resolution


@dataclass(frozen=True)
class Cell:
    """The arithmetic of one weight, in float64: Σ products → raw → scaled → capped → e^ / Σ e^.

    `products` (d): q_i·k_j term by term. `visible`: whether query i may see key j. `lse`: the
    logarithm of the row's Σ exp. `weight`: exp(capped − lse), 0 if not visible.
    """

    i: int
    j: int
    products: torch.Tensor
    raw: float
    scaled: float
    capped: float
    visible: bool
    lse: float
    weight: float


class AttentionMap:
    """The pooled map of softmax weights, and what leads from it down to one multiply-add.

    Positions count from 0. `head` is the query head. Every view is exact, also while the map is
    coarse: what is missing for the rows that are asked is computed then, in O(rows·T·d).
    """

    def __init__(self, problem: Problem, entropy: bool = False):
        self.problem, self._moments = problem, entropy
        h, R, C = problem.h, problem.rows.count, problem.columns.count
        self._tiles = torch.zeros(h, R, C)
        self._rows = Rows(problem)
        self._known = torch.zeros(h, R, dtype=torch.bool)
        self._overflow: list[tuple[int, int, int]] = []
        self.seconds_left: float | None = None
        self.seconds = 0.0

    # --- the whole ------------------------------------------------------------------------------

    def _own(self, tensor):
        """With an axis of heads only if the queries came with one."""
        return tensor if self.problem.heads else tensor[0]

    @property
    def tiles(self) -> torch.Tensor:
        """Pooled weights, float32 (h, R, C), or (R, C) without heads."""
        return self._own(self._tiles)

    def tiles_of(self, head: int = 0) -> torch.Tensor:
        """The pooled weights of one head, float32 (R, C)."""
        return self._tiles[self._inside(head, 0, 0, 1, 1)[0]]

    @property
    def row_edges(self) -> torch.Tensor:
        """Tile r holds the queries row_edges[r] to row_edges[r + 1], int64 (R + 1)."""
        return self.problem.rows.edges()

    @property
    def col_edges(self) -> torch.Tensor:
        """Tile c holds the keys col_edges[c] to col_edges[c + 1], int64 (C + 1)."""
        return self.problem.columns.edges()

    @property
    def known(self) -> torch.Tensor:
        """Which rows of tiles are exact, bool (h, R) or (R); the others stand for a sample."""
        return self._own(self._known)

    @property
    def exact(self) -> bool:
        return bool(self._known.all())

    @property
    def done(self) -> float:
        """The share of queries whose tiles are exact, 0 to 1."""
        sizes = self.row_edges.diff()
        return float((self._known * sizes).sum() / (sizes.sum() * self.problem.h))

    # --- one number per query -------------------------------------------------------------------

    @property
    def lse(self) -> torch.Tensor:
        """log Σ exp of each query's scores, float64 (h, S) or (S); −∞ if it sees nothing.

        NaN where it is not known yet, as for the other row facts.
        """
        return self._own(self._rows.lse)

    @property
    def entropy(self) -> torch.Tensor:
        """Of each query's weights in nats, float64 (h, S) or (S).

        Without `entropy=True` it is found on first use, by a second pass over the known queries.
        """
        p, rows = self.problem, self._rows

        def do(job, scratch, halted):
            row_facts(p, *job, rows, scratch)
            return True

        for head in range(p.h):
            open_ = (~rows.total[head].isnan() & rows.moment[head].isnan()).nonzero()[:, 0]
            parts = open_.split(block_size(p.q.device)[0])
            work([(head, part) for part in parts if len(part)], do, p.q.device)
        return self._own(rows.entropy)

    @property
    def largest(self) -> torch.Tensor:
        """The largest weight of each query, float32 (h, S) or (S)."""
        return self._own(self._rows.largest)

    @property
    def where(self) -> torch.Tensor:
        """The key of the largest weight, int64 (h, S) or (S); −1 if there is none or unknown."""
        for head in range(self.problem.h):
            self._find(head)
        return self._own(self._rows.where)

    def _find(self, head: int) -> None:
        """Look for the strongest key within the tile that is known to hold it."""
        rows, columns = self._rows, self.problem.columns
        open_ = (rows.where[head] < 0) & (rows.total[head] > 0)
        order = open_.nonzero()[:, 0]
        order = order[rows.winner[head, order].argsort(stable=True)]
        tiles, counts = rows.winner[head, order].unique_consecutive(return_counts=True)
        for tile, group in zip(tiles.tolist(), order.split(counts.tolist()), strict=True):
            start = columns.start + tile * columns.size
            stop = min(start + columns.size, columns.stop)
            for part in group.split(max(1, VIEW // (8 * columns.size))):
                found = self._scores(head, part, start, stop).argmax(-1)
                rows.where[head, part] = (found + start).cpu()

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Queries that see nothing, NaN in an input, scores that the input's type cannot hold."""
        p = self.problem
        found = [
            Notice("nan", symbol=name, index=tuple(self._own(x).isnan().nonzero()[0].tolist()))
            for name, x in (("Q", p.q), ("K", p.k))
            if bool(self._own(x).isnan().any())
        ]
        low, high = p.seen(torch.arange(p.S))
        if bool((blind := low >= high).any()):
            count, first = int(blind.sum()) * p.h, int(blind.nonzero()[0])
            index = (0, first) if p.heads else (first,)
            found.append(Notice("blind", count=count, rows=p.S * p.h, index=index))
        if self._overflow:
            index = min(self._overflow)
            dtype = str(p.q.dtype).removeprefix("torch.")
            index = index if p.heads else index[1:]
            found.append(Notice("overflow-map", dtype=dtype, index=index))
        return tuple(found)

    # --- closer -----------------------------------------------------------------------------------

    def scores(self, i0: int, j0: int, rows: int, cols: int, head: int = 0) -> torch.Tensor:
        """Scaled, capped and masked scores of a rectangle, float32 (rows, cols); −∞ is hidden."""
        head, i0, j0, rows, cols = self._inside(head, i0, j0, rows, cols)
        require(rows * cols <= VIEW, "view-large", rows=rows, cols=cols, most=VIEW)
        return self._scores(head, torch.arange(i0, i0 + rows), j0, j0 + cols).float().cpu()

    def window(self, i0: int, j0: int, rows: int, cols: int, head: int = 0) -> torch.Tensor:
        """The weights of a rectangle at full resolution, float32 (rows, cols)."""
        head, i0, j0, rows, cols = self._inside(head, i0, j0, rows, cols)
        require(rows * cols <= VIEW, "view-large", rows=rows, cols=cols, most=VIEW)
        at = torch.arange(i0, i0 + rows)
        s, lse = self._scores(head, at, j0, j0 + cols), self._lse(head, at)
        return s.sub_(lse.to(s.device)[:, None]).exp_().float().cpu()

    def row(self, i: int, head: int = 0) -> torch.Tensor:
        """All weights of query i, float32 (T)."""
        return self.window(i, 0, 1, self.problem.T, head)[0]

    def strongest(self, i: int, count: int = 10, head: int = 0) -> tuple:
        """The `count` keys of query i with the largest weights, first the largest: (keys, weights).

        Of equal weights the earlier key comes first. Keys that it does not see are left out.
        """
        head, i, *_all = self._inside(head, i, 0, 1, self.problem.T)
        checks.count("count", count)
        s = self._scores(head, torch.tensor([i]), 0, self.problem.T)[0]
        seen = int((s > -math.inf).sum())
        count = min(count, seen)
        least = s.topk(count).values[-1] if count else math.inf
        keys = (s >= least).nonzero()[:, 0]
        keys = keys[s[keys].argsort(descending=True, stable=True)][:count]
        lse = self._lse(head, torch.tensor([i])).to(s.device)
        return keys.cpu(), (s[keys] - lse).exp().float().cpu()

    def cell(self, i: int, j: int, head: int = 0) -> Cell:
        """How one weight comes about, each product and sum in float64."""
        head, i, j, *_one = self._inside(head, i, j, 1, 1)
        p = self.problem
        q, k = p.q[head, i].double(), p.k[head * len(p.k) // p.h, j].double()
        products = (q * k).cpu()
        raw = float(products.sum())
        scaled = raw * p.scale if p.scale else 0.0
        capped = scaled if p.softcap is None else p.softcap * math.tanh(scaled / p.softcap)
        low, high = p.seen(torch.tensor([i]))
        visible = int(low) <= j < int(high)
        lse = float(self._lse(head, torch.tensor([i])))
        weight = math.exp(capped - lse) if visible else 0.0
        return Cell(i, j, products, raw, scaled, capped, visible, lse, weight)

    def region(
        self, i0: int, j0: int, rows: int, cols: int, tiles: int = 512, pool: str | None = None,
        head: int = 0,
    ) -> torch.Tensor:  # fmt: skip
        """A rectangle pooled anew, from the kept log-sum-exp: float32 (≤ tiles, ≤ tiles).

        Its tiles are cut as those of the map, from its own corner. O(rows·cols·d).
        """
        head, i0, j0, rows, cols = self._inside(head, i0, j0, rows, cols)
        pool, p = self.problem.pool if pool is None else pool, self.problem
        check_tiles(tiles, pool)
        self._lse(head, torch.arange(i0, i0 + rows))
        down, across = cut(i0, i0 + rows, tiles), cut(j0, j0 + cols, tiles)
        made = torch.zeros(down.count, across.count)
        block = Block(p, head, down, across, pool, self._rows)

        def do(job, scratch, halted):
            first, last = job
            made[first:last] = block.pooled(first, last, scratch)
            return True

        work(block.jobs(), do, p.q.device)
        return made

    # --- inner ------------------------------------------------------------------------------------

    def _inside(self, *given) -> tuple[int, ...]:
        """Head, first row and column, rows and columns as whole numbers that the map has."""
        p = self.problem
        try:
            head, i0, j0, rows, cols = map(operator.index, given)
        except TypeError as problem:
            raise InputError("map-place", got=str(given)[:80]) from problem
        index = (head, i0, j0, i0 + rows, j0 + cols)
        ok = 0 <= head < p.h and 0 <= i0 < i0 + rows <= p.S and 0 <= j0 < j0 + cols <= p.T
        require(ok, "outside-map", index=index, h=p.h, S=p.S, T=p.T)
        return head, i0, j0, rows, cols

    def _scores(self, head, rows, start, stop) -> torch.Tensor:
        """Float64 scores (rows, stop − start) as the reader knows them, in nats."""
        p = self.problem
        q = p.q[head, rows.to(p.q.device)].double()
        s = q @ p.k[head * len(p.k) // p.h, start:stop].double().T
        s = s.mul_(p.scale) if p.scale else torch.zeros_like(s)
        s = s if p.softcap is None else s.div_(p.softcap).tanh_().mul_(p.softcap)
        low, high = (x.to(s.device) for x in p.seen(rows))
        return hide(s, low, high, start) if p.masked else s

    def _lse(self, head: int, rows: torch.Tensor) -> torch.Tensor:
        """Of these rows, computed now where it is not known; +∞ for a query that sees nothing."""
        missing = rows[self._rows.total[head, rows].isnan()]
        if len(missing):

            def do(part, scratch, halted):
                row_facts(self.problem, head, part, self._rows, scratch)
                return True

            work(missing.split(64), do, self.problem.q.device)
        found = self._rows.log_sums(head, rows)
        return torch.where(found == -math.inf, math.inf, found)

    def _check(self, head: int, at: range, scratch) -> None:
        """Look for scores that the input's own type cannot hold."""
        found = overflow(self.problem, head, at, scratch)
        if found:
            self._overflow.append(found)
