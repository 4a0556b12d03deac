"""One record per query: what the pass found, and the numbers that follow from it.

NaN, or −1 for a key, stands where a query has not been looked at.

>>> import torch
>>> from core.longmap.problem import problem
>>> Rows(problem(torch.eye(2), torch.eye(2))).lse
tensor([[nan, nan]], dtype=torch.float64)
"""

from __future__ import annotations

import math

import torch

from core.longmap.problem import Problem
from core.longmap.sweep import Swept

LN2 = math.log(2)
PART = 8192  # queries that are taken to float64 at once


class Rows:
    """Facts of all queries (h, S), on the CPU. Workers write to different rows of it."""

    def __init__(self, problem: Problem):
        size = (problem.h, problem.S)
        self.problem = problem
        self.total = torch.full(size, math.nan, dtype=torch.float64)  # Σ power
        self.moment = torch.full_like(self.total, math.nan)  # Σ power·score, where asked for
        self.shift = torch.zeros_like(self.total)
        self.top = torch.full(size, math.nan, dtype=torch.float64)  # logarithm of the largest power
        self.winner = torch.full(size, -1, dtype=torch.int32)  # its tile
        self.where = torch.full(size, -1)

    def note(self, head: int, at, found: Swept) -> None:
        """Keep what a sweep of the queries `at` found."""
        at = slice(at.start, at.stop) if isinstance(at, range) else at
        top, winner = found.largest.max(-1)
        self.top[head, at] = top.double().cpu()
        self.winner[head, at] = winner.int().cpu()
        # Always both: a row may have been looked at before, in a block of other lengths.
        self.moment[head, at] = math.nan if found.moment is None else found.moment.cpu()
        self.shift[head, at] = 0.0 if found.shift is None else found.shift.double().cpu()
        self.total[head, at] = found.total.cpu()

    def log_sums(self, head: int, at) -> torch.Tensor:
        """log Σ exp of the scores of the queries `at`, as a reader knows them, float64 (n)."""
        at = slice(at.start, at.stop) if isinstance(at, range) else at
        p, log = self.problem, self.total[head, at].log2() + self.shift[head, at]
        q, keys = p.q[head, at if isinstance(at, slice) else at.to(p.q.device)], p.keys(head)
        return torch.cat([keys.shift(part).cpu() for part in q.split(PART)]) + log * LN2

    @property
    def lse(self) -> torch.Tensor:
        return torch.stack([self.log_sums(h, range(self.problem.S)) for h in range(len(self.top))])

    @property
    def entropy(self) -> torch.Tensor:
        found = (self.total.log2() - self.moment / self.total).mul_(LN2).clamp_min_(0)
        return torch.where(self.total == 0, 0.0, found)

    @property
    def largest(self) -> torch.Tensor:
        found = (self.top - self.total.log2()).exp2_().float()
        return torch.where(self.total == 0, 0.0, found)
