"""A map in the making: a coarse picture at once, then block by block until it is exact.

>>> import torch
>>> q = torch.randn(600, 8)
>>> states = [(m.exact, m.done) for m in refine(q, q)]
>>> states[0], states[-1]
((False, 0.0), (True, 1.0))
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

import torch

from core.errors import require
from core.longmap.blocks import (
    areas,
    block_rows,
    block_size,
    jobs,
    join,
    pool_rows,
    row_facts,
    runs,
)
from core.longmap.crew import work
from core.longmap.problem import Problem, problem
from core.longmap.result import AttentionMap

EVERY = 0.3  # seconds between two states
COARSE = 1.2e10  # floating-point operations that a coarse picture may take


def attention_map(
    q, k, *, tiles=512, pool="max", causal=False, window=None, scale=None, softcap=None,
    entropy=False,
) -> AttentionMap:  # fmt: skip
    """The exact map of softmax(q·kᵀ·scale), pooled to at most `tiles` × `tiles`.

    q (S, d) and k (T, d), or (h, S, d) and (g, T, d) with g dividing h: tensors, NumPy arrays or
    nested lists. `pool`: "max" keeps the smallest needle visible, "mean" and "sum" keep mass.
    `causal`: query i sees key j ≤ i, or "bottom-right". `window`: (left, right), inclusive, −1 for
    open. `scale`: default 1/√d. `softcap`: scores become cap·tanh(score/cap) before masks. A query
    that sees nothing has weights 0. Memory O(h·(S + T)·d + h·tiles²), time O(h·S·T·d); never S×T.
    Pooled values are within 1e-5, relative, of float64. `entropy`: whether to find it in the same
    pass, which then takes about a tenth longer. Raises InputError.

    >>> attention_map([[1.0], [0.0]], [[0.0], [9.0]], pool="sum", scale=0.0).tiles
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    asked = problem(
        q, k, tiles=tiles, pool=pool, causal=causal, window=window, scale=scale, softcap=softcap
    )
    made = AttentionMap(asked, entropy)
    for _ in _refine(made, None, math.inf):
        pass
    return made


def refine(
    q, k, *, stop: Callable[[], bool] | None = None, start: AttentionMap | None = None,
    tiles=512, pool="max", causal=False, window=None, scale=None, softcap=None,
    entropy=False,
) -> Iterator[AttentionMap]:  # fmt: skip
    """The map of `attention_map` as it gets better, about every 0.3 s.

    It is one object that is filled further between two yields. First each row of tiles stands for
    one sampled query of it (`known` is False there); then blocks of rows become exact, spread over
    the map. `stop()` is asked between blocks; once true, the generator ends and the map keeps what
    it has. `start=map` resumes such a map: the result is the same, bit for bit.
    """
    asked = problem(
        q, k, tiles=tiles, pool=pool, causal=causal, window=window, scale=scale, softcap=softcap
    )
    made = AttentionMap(asked, entropy) if start is None else start
    if start is not None:
        same = asked.options() == start.problem.options()
        same = same and torch.equal(asked.q.isnan(), start.problem.q.isnan())
        same = same and torch.equal(asked.q.nan_to_num(), start.problem.q.nan_to_num())
        same = same and torch.equal(asked.k.nan_to_num(), start.problem.k.nan_to_num())
        require(same, "map-start")
    yield from _refine(made, stop, EVERY, coarse=start is None)


def _refine(made: AttentionMap, stop, every: float, coarse: bool | None = None):
    p = made.problem
    began = time.perf_counter()
    if coarse:
        _sample(made)
        made.seconds += time.perf_counter() - began
        yield made
    left = [job for job in _order(p) if not bool(made._known[job[0], job[1] : job[2]].all())]
    effort = {job: _effort(p, job) for job in left}
    spent = finished = 0.0
    while left:
        began, count = time.perf_counter(), len(left)
        work(left, _doer(made), p.q.device, seconds=every, stop=stop)
        took = time.perf_counter() - began
        still = [job for job in left if not bool(made._known[job[0], job[1] : job[2]].all())]
        finished += sum(effort[job] for job in set(left) - set(still))
        spent, left = spent + took, still
        made.seconds += took
        rate = finished / spent if finished else 0.0
        made.seconds_left = sum(effort[job] for job in left) / rate if rate else None
        if len(left) < count:
            yield made
        if left and stop is not None and stop():
            return


def _order(p: Problem) -> list[tuple[int, int, int]]:
    """Jobs (head, first row tile, last), each next one far from those before."""
    runs = jobs(p.rows, p.q.device)
    bits = max(1, (len(runs) - 1).bit_length())
    spread = sorted(range(len(runs)), key=lambda n: int(f"{n:0{bits}b}"[::-1], 2))
    return [(head, *runs[n]) for n in spread for head in range(p.h)]


def _effort(p: Problem, job) -> float:
    """How many scores a job takes."""
    _, first, last = job
    at = torch.arange(first * p.rows.size, min(last * p.rows.size, p.S))
    low, high = p.seen(at)
    return float((high - low).sum()) + p.rows.size


def _doer(made: AttentionMap):
    p = made.problem
    size, mass = p.rows.size, p.pool != "max"
    cells = areas(p.rows, p.columns) if p.pool == "mean" else None

    def do(job, scratch, halted) -> bool:
        head, first, last = job
        start, stop = first * size, min(last * size, p.S)
        pooled = None
        for at in runs(start, stop, block_rows(p.rows, scratch.device)):
            if pooled is not None and halted():
                return False
            found = row_facts(p, head, at, made._rows, scratch, mass, made._moments)
            pooled = join(pooled, pool_rows(found, p.pool, size).cpu(), p.pool)
            made._check(head, at, scratch)
        made._tiles[head, first:last] = pooled if cells is None else pooled / cells[first:last]
        made._known[head, first:last] = True
        return True

    return do


# --- the coarse picture -------------------------------------------------------------------------


def _sample(made: AttentionMap) -> None:
    """Each row of tiles as one of its queries has it; of very many only some, copied between."""
    p = made.problem
    count, size, mass = p.rows.count, p.rows.size, p.pool != "max"
    dear = 2.0 * p.h * count * p.T * p.q.shape[-1] / COARSE
    chosen = torch.arange(0, count, max(1, math.ceil(dear)))
    middle = (chosen * size + size // 2).clamp_max(p.S - 1)
    widths, heights = p.columns.edges().diff().float(), p.rows.edges().diff().float()

    def do(job, scratch, halted) -> bool:
        head, part = job
        found = row_facts(p, head, middle[part], made._rows, scratch, mass, made._moments)
        pooled = pool_rows(found, p.pool, 1).cpu()
        pooled = pooled / widths if p.pool == "mean" else pooled
        pooled = pooled * heights[chosen[part], None] if p.pool == "sum" else pooled
        made._tiles[head, chosen[part]] = pooled
        return True

    parts = torch.arange(len(chosen)).split(min(64, block_size(p.q.device)[0]))
    work([(head, part) for head in range(p.h) for part in parts], do, p.q.device)
    nearest = chosen[torch.bucketize(torch.arange(count), chosen, right=True) - 1]
    made._tiles[:] = made._tiles[:, nearest]
