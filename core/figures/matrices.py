"""A tensor of a trace as one matrix of plain numbers: the chosen sample and head, small enough.

The same reading as in `core.manifest`: leading axes stand still, (S, h, d_k) lies flat as
S × h·d_k, and where there are too many cells, each drawn one is the entry of largest magnitude in
its block.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from core.figures import markup
from core.manifest import UNIT, lay_flat, layout, pool
from core.ops import axes

NAMED = 128  # positions of a side beyond which only the reader's own names are kept


@dataclass(frozen=True)
class Matrix:
    """Numbers to draw, and where they come from.

    `values` (rows, cols) as drawn; `size` the rows and columns of the tensor itself; `block` how
    many of them one drawn cell stands for, and `where` the row and column that its number has in
    the tensor, or None where every cell is drawn. `lead`: the index on the axes that stand still.
    `row_names`, `col_names`: a name per row and column, escaped for Plotly, empty for none.
    """

    values: np.ndarray
    symbol: str = ""
    lead: tuple[int, ...] = ()
    unit: bool = False
    row_names: tuple[str, ...] = ()
    col_names: tuple[str, ...] = ()
    size: tuple[int, int] = (0, 0)
    block: tuple[int, int] = (1, 1)
    where: np.ndarray | None = None
    flat: bool = False  # columns are two axes side by side
    turned: bool = False  # rows and columns have changed places

    @property
    def largest(self) -> float:
        """The largest finite magnitude, 1 if there is none: the end of the colour scale."""
        finite = np.abs(self.values[np.isfinite(self.values)])
        return float(finite.max()) if finite.size and finite.max() > 0 else 1.0

    @property
    def T(self) -> Matrix:
        """Rows for columns."""
        where = None if self.where is None else self.where.transpose(1, 0, 2)
        return replace(
            self, values=self.values.T, row_names=self.col_names, col_names=self.row_names,
            size=self.size[::-1], block=self.block[::-1], where=where, turned=not self.turned,
        )  # fmt: skip


def plain(
    values, most: int = 1 << 40, *, symbol="", lead=(), unit=False, rows=(), cols=(), flat=False
) -> Matrix:
    """A matrix (a tensor, an array or nested lists), reduced to at most `most` drawn cells.

    >>> plain([[1.0, -5.0, 2.0, 0.0]], most=2).values
    array([[-5.,  2.]], dtype=float32)
    """
    tensor = torch.as_tensor(values).detach().cpu()
    tensor = tensor if tensor.dtype == torch.float64 else tensor.to(torch.float32)
    size, block, where = tuple(tensor.shape), (1, 1), None
    if tensor.numel() > most:
        tensor, flat_where, block = pool(tensor, most)
        narrow = np.int16 if max(size) < 1 << 15 else np.int32
        where = np.stack(np.divmod(flat_where.numpy(), size[1]), axis=-1).astype(narrow)
    return Matrix(
        tensor.numpy(), symbol, tuple(lead), unit, tuple(rows), tuple(cols), size, block, where,
        flat,
    )  # fmt: skip


def of_trace(
    trace, name: str, pick=None, labels=None, most: int = 1 << 40, values=None, whole: int = 0
) -> Matrix:
    """One tensor of a trace at the chosen sample and head.

    `pick`: {"B": 0, "h": 0}. `labels`: names of the positions of a dim, {"S": ["the", "cat"]}.
    `values`: tensors to show instead of the trace's own, by symbol. `whole`: cells up to which
    nothing is reduced, where that is more than `most`.

    >>> import core
    >>> of_trace(core.run(core.AttentionConfig(S=4, H=6, d_k=3)), "Q").values.shape
    (4, 3)
    """
    step, shape = trace.step(name), trace.shape(name)
    names, where = step.dims.split(), layout(step.dims)
    chosen = [_position(names[axis], shape[axis], trace, pick or {}) for axis in where["pick"]]
    lead = tuple(chosen)
    part = values[name][lead] if values and name in values else trace.rows(name, lead)
    rows, cols = (
        _names(names, where[side], trace, shape, labels or {}) for side in ("rows", "cols")
    )
    matrix = lay_flat(part)
    most = most if matrix.numel() > whole else matrix.numel()
    unit, flat = name in UNIT and not values, len(where["cols"]) > 1
    return plain(matrix, most, symbol=name, lead=lead, unit=unit, rows=rows, cols=cols, flat=flat)


def _position(name: str, size: int, trace, pick) -> int:
    """Where a leading axis stands still; a key/value head is found from its query head."""
    if size == 1:
        return 0
    chosen = pick.get("h" if name == "g" else name, 0)
    return chosen // trace.sizes.get("r", 1) if name == "g" else chosen


def _names(dims: Sequence[str], along: Sequence[int], trace, shape, labels) -> tuple[str, ...]:
    """Names along one side: the reader's, else the dim with a number from 1; none if too many."""
    count = math.prod(shape[axis] for axis in along)
    atoms = [atom for axis in along for atom in axes(dims[axis])[0]]
    if not atoms:
        return ("",)
    given = labels.get(atoms[0]) if len(atoms) == 1 else None
    if given and len(given) == count:
        return tuple(markup.labels(given))
    if count > NAMED:
        return ()
    return (
        numbered(atoms, [trace.sizes[atom] for atom in atoms])
        if len(atoms) > 1
        else numbered(atoms, [count])
    )


def numbered(atoms: Sequence[str], sizes: Sequence[int]) -> tuple[str, ...]:
    """Names of the positions along dims that lie side by side, row by row, counted from 1.

    >>> numbered(["h", "d_k"], [2, 2])
    ('h 1 · d_k 1', 'h 1 · d_k 2', 'h 2 · d_k 1', 'h 2 · d_k 2')
    """
    places = itertools.product(*(range(1, size + 1) for size in sizes))
    return tuple(
        " · ".join(f"{atom} {i}" for atom, i in zip(atoms, place, strict=True)) for place in places
    )
