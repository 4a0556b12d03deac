"""What a reader of a trace should know beyond its numbers, found in its tensors.

>>> import core, torch
>>> q, mask = torch.zeros(2, 4), torch.tensor([[False, False], [True, True]])
>>> [notice.id for notice in core.attend(q, q, q, mask=mask).notices]
['blind']
"""

import math

import torch

from core.errors import Notice
from core.ops import Bias, Given, Mask, peak


def find(trace) -> tuple[Notice, ...]:
    """Queries without a key, the first NaN, the first overflow, a mask that looks boolean."""
    found = [_mask_looks_boolean(trace), *_not_finite(trace), _blind(trace)]
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


def _not_finite(trace) -> list[Notice]:
    """The first NaN, and the first number that passed the range of its type."""
    nan = overflow = None
    for step in trace.steps:
        if step.symbol not in trace.stored and step.op.reach(1.0) <= 1.0:
            continue  # made on demand, and no larger than what it is made from
        tensor = step.tensor
        if tensor.dtype == torch.bool or math.isfinite(peak(tensor)):
            continue
        if nan is None and bool((hit := tensor.isnan()).any()):
            nan = Notice("nan", symbol=step.symbol, index=_first(hit))
        if overflow is None and bool((hit := _grown(step.op, tensor)).any()):
            dtype = str(tensor.dtype).removeprefix("torch.")
            overflow = Notice("overflow", symbol=step.symbol, dtype=dtype, index=_first(hit))
    return [nan, overflow]


def _grown(op, tensor):
    """Where a number became infinite; −∞ in a mask, or made by one, was meant."""
    if isinstance(op, Given | Bias | Mask):
        return tensor == math.inf
    return tensor.isinf()


def _blind(trace):
    if "weights" not in trace:
        return None
    hit = trace["weights"].amax(-1) == 0
    if not bool(hit.any()):
        return None
    return Notice("blind", count=int(hit.sum()), rows=hit.numel(), index=_first(hit))
