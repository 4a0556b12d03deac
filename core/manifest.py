"""A trace as the browser needs it: one description of all steps, and one flat float32 array.

A small trace goes whole, views sharing the numbers of the tensor they look at. Of a large one go
the chosen sample and head only, and a matrix of more than EXACT cells goes as a picture: each
drawn cell is the entry of largest magnitude in its block, and where it stands.

>>> import core
>>> described, values = manifest(core.run(core.AttentionConfig(S=4, H=6, d_k=3)))
>>> [step["symbol"] for step in described["steps"]][:3], values.dtype.name
(['X', 'W_Q', 'Q'], 'float32')
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch

from core import ops
from core.dims import DIMS
from core.errors import require
from core.trace import Trace, TracedStep

WHOLE = 200_000  # elements: below this a trace is sent with all samples and heads
EXACT = 65_536  # cells: a larger matrix is sent as a picture
PICTURE = 24_576  # cells of such a picture

UNIT = ("weights", "mask")  # read on a scale from 0 to 1


def manifest(
    trace: Trace,
    pick: dict[str, int] | None = None,
    *,
    labels: dict[str, list] | None = None,
    values: Mapping[str, torch.Tensor] | None = None,
    target: tuple[str, tuple[int, ...]] | None = None,
) -> tuple[dict, np.ndarray]:
    """Describe every step, and gather the numbers.

    `pick`: chosen sample and head, {"B": 0, "h": 0}. `labels`: names of the positions of a dim.
    `values`: numbers to show instead of the trace's own (gradients), `target` the element they
    derive. Returns plain data fit for strict JSON, and the array that its offsets point into.
    """
    extents = _extents(trace)
    pick = {name: (pick or {}).get(name, 0) for name in extents}
    for name, chosen in pick.items():
        require(0 <= chosen < extents[name], "no-cell", symbol=name, shape=(extents[name],),
                index=(chosen,))  # fmt: skip
    whole = _count(trace) <= WHOLE
    packer = _Packer(trace, pick, whole, values)
    steps = [_describe(step, packer) for step in trace.steps]
    described = {
        "mode": "gradient" if target else "values",
        "target": target and {"symbol": target[0], "index": list(target[1])},
        "dims": {n: {"name": DIMS[n].name, "colour": DIMS[n].colour} for n in _names(trace)},
        "labels": labels or {},
        "pick": pick,
        "extents": extents,
        "repeats": trace.sizes.get("r", 1),
        "whole": whole,
        "steps": steps,
    }
    return described, packer.array()


def _names(trace) -> list[str]:
    used = {atom for step in trace.steps for axis in ops.axes(step.dims) for atom in axis}
    return [name for name in DIMS if name in used]


def _extents(trace) -> dict[str, int]:
    """The leading dims a reader can choose among."""
    axes = {name for step in trace.steps for name in step.dims.split()[:-2]}
    return {name: trace.sizes[name] for name in ("B", "h") if name in axes}


def _count(trace) -> int:
    return sum(math.prod(step.shape) for step in trace.steps if not step.shares)


def _describe(step: TracedStep, packer: _Packer) -> dict:
    tensor, largest = packer.place(step)
    unit = step.symbol in UNIT and packer.values is None
    tints = isinstance(step.op, ops.Rearrange)
    return {
        "symbol": step.symbol,
        "stage": step.stage,
        "text": step.text,
        "dims": step.dims.split(),
        "shape": list(step.shape),
        "layout": layout(step.dims),
        "reads": list(step.reads),
        "equation": _equation(step),
        "op": step.rule,
        "tensor": tensor,
        "range": {"kind": "unit"} if unit else {"kind": "signed", "max": largest},
        "cost": {"flops": step.flops, "bytes": step.bytes},
    } | ({"tint": "h"} if tints else {})


def layout(dims: str) -> dict[str, list[int]]:
    """Which axes are chosen, which run down and which across. (S, h, d_k) lies flat: S × h·d_k.
    A tensor of one axis is a single row.

    >>> layout("B h S d_k"), layout("B S h d_k")
    ({'pick': [0, 1], 'rows': [2], 'cols': [3]}, {'pick': [0], 'rows': [1], 'cols': [2, 3]})
    """
    names = dims.split()
    wide = len(names) > 2 and names[-2] in ("h", "g")
    rows = len(names) - (3 if wide else 2)
    if rows < 0:
        return {"pick": [], "rows": [], "cols": [0]}
    across = list(range(rows + 1, len(names)))
    return {"pick": list(range(rows)), "rows": [rows], "cols": across}


def lay_flat(part: torch.Tensor) -> torch.Tensor:
    """A part with the leading axes chosen as one matrix: (S, h, d_k) as (S, h·d_k).

    >>> lay_flat(torch.zeros(2, 3, 4)).shape, lay_flat(torch.zeros(4)).shape
    (torch.Size([2, 12]), torch.Size([1, 4]))
    """
    return part.reshape(part.shape[0] if part.ndim > 1 else 1, -1)


def _equation(step: TracedStep) -> list[dict]:
    result = [{"symbol": step.symbol}]
    if not step.reads:
        return result
    return [*step.op.equation(step.reads), {"operator": "="}, *result]


class _Packer:
    """Lays tensors into one flat array and says where each lies."""

    def __init__(self, trace, pick, whole, values):
        self.trace, self.pick, self.whole, self.values = trace, pick, whole, values
        self.parts, self.length, self.placed, self.scales = [], 0, {}, {}

    def array(self) -> np.ndarray:
        return np.concatenate(self.parts) if self.parts else np.zeros(0, np.float32)

    def _append(self, tensor: torch.Tensor) -> int:
        flat = tensor.detach().to("cpu", torch.float32).reshape(-1).numpy()
        offset, self.length = self.length, self.length + flat.size
        self.parts.append(np.ascontiguousarray(flat, "<f4"))
        return offset

    def place(self, step: TracedStep) -> tuple[dict, float]:
        """Where a step's numbers lie, and the largest finite magnitude among those sent."""
        if self.whole:
            return self._whole(step)
        return self._chosen(step)

    def _tensor(self, step):
        if self.values is not None and step.symbol in self.values:
            return self.values[step.symbol]
        return step.tensor

    def _whole(self, step):
        tensor = self._tensor(step)
        base = tensor.untyped_storage()
        fits = base.nbytes() // tensor.element_size() <= 2 * tensor.numel()
        key = (base.data_ptr(), tensor.dtype)
        if not (fits and key in self.placed):
            dense = tensor if fits else tensor.contiguous()
            entire = dense.as_strided((dense.untyped_storage().nbytes() // dense.element_size(),),
                                      (1,), 0) if fits else dense  # fmt: skip
            # The tensor is kept along with its place: a freed address could come again.
            self.placed[key] = (self._append(entire), tensor)
            self.scales[key] = _largest(entire)
            if not fits:
                return self._entry(self.placed.pop(key)[0], dense), self.scales[key]
        entry = self._entry(self.placed[key][0] + tensor.storage_offset(), tensor)
        return entry, self.scales[key]

    @staticmethod
    def _entry(offset, tensor):
        return {"offset": offset, "strides": list(tensor.stride())}

    def _chosen(self, step):
        where, names = layout(step.dims), step.dims.split()
        lead = tuple(self._index(names[axis], step.shape[axis]) for axis in where["pick"])
        if self.values is not None and step.symbol in self.values:
            part = self.values[step.symbol][lead]
        else:
            part = self.trace.rows(step.symbol, lead)
        matrix = lay_flat(part)
        largest = _largest(matrix)
        if matrix.numel() > EXACT:
            return self._picture(matrix, step), largest
        strides = [0] * len(lead) + list(part.contiguous().stride())
        fixed = {names[axis]: i for axis, i in zip(where["pick"], lead, strict=True)}
        return {"offset": self._append(matrix), "strides": strides, "fixed": fixed}, largest

    def _index(self, name, size):
        """The chosen position on a leading axis; a key/value head is found from its query head."""
        if size == 1:
            return 0
        chosen = self.pick.get("h" if name == "g" else name, 0)
        return chosen // self.trace.sizes.get("r", 1) if name == "g" else chosen

    def _picture(self, matrix, step):
        key = (matrix.data_ptr(), tuple(matrix.shape))
        if step.shares and key in self.placed:
            return self.placed[key][0]
        drawn, where, block = pool(matrix)
        entry = {
            "offset": self._append(drawn),
            "where": self._append(where),
            "rows": drawn.shape[0],
            "cols": drawn.shape[1],
            "block": list(block),
        }
        self.placed[key] = (entry, matrix)
        return entry


def pool(matrix: torch.Tensor, most: int = PICTURE):
    """Reduce a matrix: per block the entry of largest magnitude, and its flat position.

    Returns (drawn, where, (rows per block, columns per block)), drawn having at most `most` cells.

    >>> pool(torch.tensor([[1.0, -5.0, 2.0, 0.0]]), most=2)
    (tensor([[-5.,  2.]]), tensor([[1, 2]]), (1, 2))
    """
    rows, cols = matrix.shape
    down = across = 1
    while math.ceil(rows / down) * math.ceil(cols / across) > most:
        if rows / down > cols / across:
            down += 1
        else:
            across += 1
    high, wide = math.ceil(rows / down) * down, math.ceil(cols / across) * across
    # Positions are exact in float32 below 2^24 = 16,777,216 cells.
    size = matrix.float() if matrix.dtype == torch.bool else matrix.abs()
    size = size.nan_to_num(nan=math.inf, posinf=math.inf)
    padded = torch.full((high, wide), -1.0, dtype=size.dtype, device=size.device)
    padded[:rows, :cols] = size
    blocks = padded.reshape(high // down, down, wide // across, across).transpose(1, 2)
    best = blocks.reshape(high // down, wide // across, down * across).argmax(-1)
    i = torch.arange(high // down, device=best.device)[:, None] * down + best // across
    j = torch.arange(wide // across, device=best.device) * across + best % across
    return matrix[i, j], i * cols + j, (down, across)


def _largest(tensor: torch.Tensor) -> float:
    """The largest finite magnitude, 1 if there is none: the end of a colour scale."""
    size = tensor.detach().to(torch.float32).abs()
    finite = size[size.isfinite()]
    largest = float(finite.max()) if finite.numel() else 0.0
    return largest or 1.0
