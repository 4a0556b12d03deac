"""What a reader of a trace should know beyond its numbers, found in its tensors.

>>> import core, torch
>>> q = torch.zeros(1, 1, 2, 4); t = core.attend(q, q, q, mask=torch.tensor([[False] * 2, [True] * 2]))
>>> [notice.id for notice in t.notices]
['blind']
"""

import math

import torch

from core.errors import Notice
from core.ops import Given


def find(trace) -> tuple[Notice, ...]:
    """Queries without a key, the first NaN, the first overflow, a mask that looks boolean."""
    found = [_mask_looks_boolean(trace), _nan(trace), _overflow(trace), _blind(trace)]
    return tuple(notice for notice in found if notice)


def looks_boolean(mask: torch.Tensor) -> bool:
    """A float mask of only zeros and ones, both of them there."""
    return bool(((mask == 0) | (mask == 1)).all()) and bool((mask == 1).any())


def _first(hit: torch.Tensor) -> tuple[int, ...]:
    return tuple(hit.nonzero()[0].tolist())


def _mask_looks_boolean(trace):
    if "bias" in trace and looks_boolean(trace["bias"]):
        return Notice("mask-looks-boolean")
    return None


def _nan(trace):
    for step in trace.steps:
        hit = step.tensor.isnan()
        if bool(hit.any()):
            return Notice("nan", symbol=step.symbol, index=_first(hit))
    return None


def _overflow(trace):
    for step in trace.steps:
        if step.symbol == "masked" or not step.tensor.is_floating_point():
            continue
        hit = step.tensor == math.inf
        if isinstance(step.op, Given) or step.symbol in ("bias", "biased"):
            continue
        hit = hit | (step.tensor == -math.inf)
        if bool(hit.any()):
            dtype = str(step.tensor.dtype).removeprefix("torch.")
            return Notice("overflow", symbol=step.symbol, dtype=dtype, index=_first(hit))
    return None


def _blind(trace):
    if "weights" not in trace:
        return None
    hit = (trace["weights"] == 0).all(-1)
    if not bool(hit.any()):
        return None
    return Notice("blind", count=int(hit.sum()), rows=hit.numel(), index=_first(hit))
