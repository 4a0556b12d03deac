"""From a swept block of queries to tiles and row facts.

>>> import torch
>>> from core.longmap.problem import problem
>>> from core.longmap.sweep import Scratch
>>> p = problem(torch.eye(2), torch.eye(2), scale=0.0)
>>> rows = Rows(p)
>>> row_facts(p, 0, range(2), rows, Scratch(torch.device("cpu"))).largest
tensor([[-1., -1.],
        [-1., -1.]])
>>> rows.log_sums(0, range(2)).exp()
tensor([2., 2.], dtype=torch.float64)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from core.longmap.problem import Problem, Tiles
from core.longmap.rows import LN2, Rows
from core.longmap.sweep import Scratch, Swept, hide, sweep

# Rows and keys whose scores stand in memory at once: they fit a core's cache, or fill a GPU.
BLOCK = {"cpu": (512, 512), "cuda": (4096, 4096)}


def block_size(device: torch.device) -> tuple[int, int]:
    """How many queries, and how many keys, are taken at once on a device."""
    return BLOCK.get(device.type, BLOCK["cuda"])


def row_facts(
    problem: Problem, head: int, at, rows: Rows, scratch: Scratch, mass=False, moment=True
) -> Swept:
    """Sweep the queries `at` (a range, or positions) of a head and note their facts.

    In what is returned, `largest` has become the logarithm (base 2) of the largest weight in each
    tile, and `mass`, if asked for, the sum of the weights there.
    """
    keys = problem.keys(head, scratch.device)
    found = sweep(
        keys, problem.asked(head, at, scratch.device), problem.columns, scratch,
        band=problem.band, width=block_size(scratch.device)[1], mass=mass, moment=moment,
    )  # fmt: skip
    rows.note(head, at, found)
    _shares(found, found.total.log2())
    return found


def _shares(found: Swept, log: torch.Tensor) -> None:
    """From powers to weights, in place, given the logarithm of each row's sum."""
    log = torch.where(log == -math.inf, 0.0, log)
    rough = log.to(found.largest.dtype)
    found.largest -= rough[:, None]
    if found.largest.dtype != log.dtype:  # what rounding the logarithm left over
        found.largest -= (log - rough).to(rough.dtype)[:, None]
    if found.mass is not None:
        # Only of a row that sees nothing here can the factor pass all bounds.
        factor = (-log).exp2().nan_to_num(nan=math.nan, posinf=0.0)
        found.mass *= factor.to(found.mass.dtype)[:, None]


def pool_rows(found: Swept, pool: str, size: int) -> torch.Tensor:
    """Tiles from weights: pool each `size` rows of (n, C), the last block maybe fewer.

    >>> s = Swept(torch.tensor([[0.0], [-1.0], [-2.0]]), None, None, None, None)
    >>> pool_rows(s, "max", 2)
    tensor([[1.0000],
            [0.2500]])
    """
    given = found.largest if pool == "max" else found.mass
    whole = len(given) // size * size
    parts = [given[:whole].view(-1, size, given.shape[1])] if whole else []
    parts += [given[whole:][None]] if whole < len(given) else []
    if pool == "max":
        return torch.cat([part.amax(1) for part in parts]).exp2_().float()
    return torch.cat([part.sum(1, dtype=torch.float64) for part in parts]).float()


def areas(down: Tiles, across: Tiles) -> torch.Tensor:
    """How many cells each tile holds, float32 (R, C)."""
    return (down.edges().diff()[:, None] * across.edges().diff()).float()


@dataclass(frozen=True)
class Block:
    """A rectangle of a map, pooled from log-sum-exps that are known."""

    problem: Problem
    head: int
    down: Tiles
    across: Tiles
    pool: str
    rows: Rows

    def jobs(self) -> list[tuple[int, int]]:
        """Runs of whole row tiles, of about as many rows as are taken at once."""
        return jobs(self.down, self.problem.q.device)

    def pooled(self, first: int, last: int, scratch) -> torch.Tensor:
        """The tiles of rows `first` to `last` (excluded)."""
        start = self.down.start + first * self.down.size
        stop = min(self.down.start + last * self.down.size, self.down.stop)
        made = None
        for at in runs(start, stop, block_rows(self.down, scratch.device)):
            part = pool_rows(self._weights(at, scratch), self.pool, self.down.size).cpu()
            made = join(made, part, self.pool)
        return made / areas(self.down, self.across)[first:last] if self.pool == "mean" else made

    def _weights(self, at: range, scratch) -> Swept:
        p, device = self.problem, scratch.device
        keys, asked = p.keys(self.head, device), p.asked(self.head, at, device)
        found = sweep(
            keys, asked, self.across, scratch,
            band=p.band, width=block_size(device)[1], mass=self.pool != "max", total=False,
        )  # fmt: skip
        lse = self.rows.log_sums(self.head, at).to(device)
        log = (lse - keys.shift(asked.q)) / LN2
        _shares(found, log if found.shift is None else log - found.shift)
        return found


def jobs(down: Tiles, device: torch.device) -> list[tuple[int, int]]:
    """Runs (first, last) of row tiles that are done together."""
    step = max(1, block_size(device)[0] // down.size)
    return [(first, min(first + step, down.count)) for first in range(0, down.count, step)]


def runs(start: int, stop: int, step: int) -> list[range]:
    """`start` to `stop` in ranges of at most `step`.

    >>> runs(1, 4, 2)
    [range(1, 3), range(3, 4)]
    """
    return [range(at, min(at + step, stop)) for at in range(start, stop, step)]


def block_rows(down: Tiles, device: torch.device) -> int:
    """How many rows of a run are taken at once: whole tiles, or an even part of one."""
    most = block_size(device)[0]
    if down.size <= most:
        return most // down.size * down.size
    return -(-down.size // -(-down.size // most))


def join(made, part, pool: str) -> torch.Tensor:
    """Tiles found by two parts of the same rows."""
    if made is None:
        return part
    return torch.maximum(made, part) if pool == "max" else made + part


def overflow(problem: Problem, head: int, at: range, scratch) -> tuple | None:
    """The first q·k of some queries that passes the range of their type, (head, i, j) or None."""
    most = torch.finfo(problem.q.dtype).max
    longest = float(problem.lengths[head, at.start : at.stop].max())
    keys = problem.keys(head, scratch.device)
    if longest * keys.given_longest <= most:
        return None
    kind = torch.float32 if problem.q.dtype == torch.float16 else torch.float64
    asked, found = problem.asked(head, at, scratch.device), []
    q, width = asked.q.to(kind), block_size(scratch.device)[1]
    for start in range(int(asked.low.min()), int(asked.high.max()), width):
        raw = (q @ keys.k[start : start + width].to(kind).T).abs_()
        hit = (hide(raw, asked.low, asked.high, start) > most).nonzero()
        found += [(head, at.start + i, start + j) for i, j in hit[:1].tolist()]
    return min(found, default=None)
