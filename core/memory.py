"""Strides, storage, view or copy: facts read from real tensors, one operation after another.

A chain is a shape and a tuple of `Operation`s (core.memory_chain). `walk` runs it on a real tensor
0, 1, 2, … and keeps what torch reports at each stage.

>>> steps = walk((1, 4, 2, 3), read_chain("transpose(1,2).contiguous()"))
>>> [(stage.strides, stage.contiguous, stage.shares) for stage in steps.stages]
[((24, 6, 3, 1), True, False), ((24, 3, 6, 1), False, True), ((24, 12, 3, 1), True, False)]
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np
import torch

from core.memory_chain import FORMS, Chain, ChainError, Operation, Shape, read_chain, refusal

__all__ = [
    "Break",
    "Conflict",
    "Cure",
    "Failure",
    "Stage",
    "Walk",
    "read_chain",
    "view_conflict",
    "walk",
]


class Break(NamedTuple):
    """Dim `dim` breaks the rule: its stride is not `expected` = inner_stride · inner_size.

    `inner` is the next dim inwards that has a say (size 1 has none); None for the innermost, whose
    stride should be 1.
    """

    dim: int
    stride: int
    inner: int | None
    inner_stride: int
    inner_size: int

    @property
    def expected(self) -> int:
        return self.inner_stride * self.inner_size


@dataclass(frozen=True)
class Stage:
    """What torch reports of one tensor of the chain. Sizes in elements unless named bytes."""

    operation: Operation | None  # None for the tensor the chain starts from
    shape: Shape
    strides: Shape
    offset: int
    contiguous: bool
    breaks: tuple[Break, ...]  # from the innermost dim outwards; empty if contiguous
    storage: int  # which of Walk.storages it reads
    shares: bool  # reads the same storage as the stage before
    start_bytes: int  # data_ptr() − untyped_storage().data_ptr()
    elements: int
    view_bytes: int
    storage_bytes: int
    touched: int  # different storage cells read: fewer than elements where a stride is 0

    def address(self, index: Sequence[int]) -> int:
        """Where element `index` stands in the storage.

        >>> walk((2, 3), read_chain("t()")).stages[-1].address((2, 1))
        5
        """
        return self.offset + sum(i * s for i, s in zip(index, self.strides, strict=True))

    def explain(self, index: Sequence[int]) -> str:
        """The same with numbers.

        >>> walk((2, 3), read_chain("t()")).stages[-1].explain((2, 1))
        '2·1 + 1·3 = 5'
        """
        terms = [f"{i}·{s}" for i, s in zip(index, self.strides, strict=True)]
        offset = [str(self.offset)] if self.offset or not terms else []
        return f"{' + '.join(offset + terms)} = {self.address(index)}"


class Conflict(NamedTuple):
    """Why a view is refused: size `size` at `target` would run dims `outer` and `inner` together,
    but a step along `outer` moves `stride` cells where inner_stride · inner_size are needed."""

    outer: int
    stride: int
    inner: int
    inner_stride: int
    inner_size: int
    target: int
    size: int

    @property
    def expected(self) -> int:
        return self.inner_stride * self.inner_size


class Cure(NamedTuple):
    """A way round a refused view, tried on the tensor: what to do, and what it copies."""

    operations: Chain
    shape: Shape
    strides: Shape
    copied_elements: int
    copied_bytes: int


@dataclass(frozen=True)
class Failure:
    """The operation at which a chain stops: torch's own words, ours, and the ways out."""

    operation: Operation
    at: int  # its place in the chain
    message: str | None  # torch's; None if it was not asked, as the result would be too large
    error: ChainError | None  # sizes that do not fit
    conflict: Conflict | None  # strides that do not fit
    cures: tuple[Cure, ...]


@dataclass(frozen=True)
class Walk:
    """A chain that was run: the stages reached, the storages they read, what stopped it."""

    shape: Shape
    chain: Chain
    stages: tuple[Stage, ...]
    storages: tuple[np.ndarray, ...]  # float32, read-only, in the order they came into being
    failure: Failure | None

    def snippet(self) -> str:
        """PyTorch code that gives the last stage: the same shape, strides and offset.

        >>> print(walk((2, 3), read_chain("t()")).snippet())
        import torch
        <BLANKLINE>
        x = torch.arange(6.0).reshape(2, 3)  # (2, 3), strides (3, 1)
        x = x.t()  # (3, 2), strides (1, 3)
        <BLANKLINE>
        print(tuple(x.shape), x.stride(), x.storage_offset(), x.is_contiguous())
        """
        return "\n".join(["import torch", "", *self._lines(), "", _PRINT])

    def _lines(self) -> Iterator[str]:
        first, *rest = self.stages
        base = f"torch.arange({first.elements}.0).reshape({_plain(self.shape)})"
        yield f"x = {base}  # {_facts(first)}"
        for before, stage in zip(self.stages, rest, strict=False):
            name, numbers = stage.operation
            if name == "matmul":
                yield _weights_code(before.shape[-1], *numbers)
            yield f"x = {FORMS[name].code(*numbers)}  # {_facts(stage)}"
        if self.failure:
            name, numbers = self.failure.operation
            why = (self.failure.message or "not run").partition(":")[0]
            yield f"# x = {FORMS[name].code(*numbers)}  # {why}"


_PRINT = "print(tuple(x.shape), x.stride(), x.storage_offset(), x.is_contiguous())"


def _plain(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _facts(stage: Stage) -> str:
    return f"{stage.shape}, strides {stage.strides}" + (
        f", offset {stage.offset}" if stage.offset else ""
    )


def _weights_code(rows: int, columns: int) -> str:
    size = rows * columns
    return f"W = torch.arange({size}).remainder(5).sub(2).float().reshape({rows}, {columns})"


def walk(shape: Shape, chain: Chain = ()) -> Walk:
    """Run `chain` on `torch.arange(…).reshape(shape)` and keep what torch reports after each step.

    Never raises for a chain that `read_chain` has read: where an operation cannot be done, the
    stages end and `failure` says why.

    >>> walk((2, 3), read_chain("t().view(6)")).failure.conflict.expected
    6
    """
    tensors = [torch.arange(prod(shape), dtype=torch.float32).reshape(shape)]
    failure = None
    for at, operation in enumerate(chain):
        result = _apply(tensors[-1], operation, at)
        if isinstance(result, Failure):
            failure = result
            break
        tensors.append(result)
    # All tensors are still held here, so no address has been given out twice.
    pointers = list(dict.fromkeys(map(_pointer, tensors)))
    before = [None, *tensors[:-1]]
    stages = tuple(
        _stage(tensor, previous, None if previous is None else chain[place - 1], pointers)
        for place, (tensor, previous) in enumerate(zip(tensors, before, strict=True))
    )
    owners = {_pointer(tensor): tensor for tensor in tensors}
    return Walk(shape, chain, stages, tuple(_storage(owners[p]) for p in pointers), failure)


def _apply(tensor: torch.Tensor, operation: Operation, at: int) -> "torch.Tensor | Failure":
    error = refusal(tensor, operation)
    if error and error.id in ("too-many", "weights-most", "dims-most"):
        return Failure(operation, at, None, error, None, ())
    try:
        result = FORMS[operation.name].run(tensor, *operation.numbers)
    except (RuntimeError, IndexError, ValueError) as refused:
        words = f"{type(refused).__name__}: {str(refused).strip().splitlines()[0]}"
        conflict = None if error else view_conflict(tensor, operation)
        return Failure(operation, at, words, error, conflict, _cures(tensor, operation, error))
    if error:  # torch does it, but nothing would be left to draw, such as narrow to length 0
        return Failure(operation, at, None, error, None, ())
    return result


def _pointer(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _storage(tensor: torch.Tensor) -> np.ndarray:
    """Every number of the tensor's storage, in order; a copy that nobody can write to."""
    length = tensor.untyped_storage().nbytes() // tensor.element_size()
    numbers = tensor.as_strided((length,), (1,), 0).numpy().copy()
    numbers.setflags(write=False)
    return numbers


def _stage(tensor, previous, operation, pointers: list[int]) -> Stage:
    shape, strides = tuple(tensor.shape), tensor.stride()
    storage = tensor.untyped_storage()
    cells = torch.arange(storage.nbytes() // tensor.element_size())
    return Stage(
        operation=operation,
        shape=shape,
        strides=strides,
        offset=tensor.storage_offset(),
        contiguous=tensor.is_contiguous(),
        breaks=tuple(_breaks(shape, strides)),
        storage=pointers.index(storage.data_ptr()),
        shares=previous is not None and _pointer(previous) == storage.data_ptr(),
        start_bytes=tensor.data_ptr() - storage.data_ptr(),
        elements=tensor.numel(),
        view_bytes=tensor.numel() * tensor.element_size(),
        storage_bytes=storage.nbytes(),
        touched=cells.as_strided(shape, strides, tensor.storage_offset()).unique().numel(),
    )


def _breaks(shape: Shape, strides: Shape) -> Iterator[Break]:
    """Where stride[i] = stride[i+1]·size[i+1] fails. A dim of size 1 is never stepped along, so its
    stride does not matter and the rule looks past it."""
    inner, inner_stride, inner_size = None, 1, 1
    for dim in reversed([dim for dim, size in enumerate(shape) if size != 1]):
        if strides[dim] != inner_stride * inner_size:
            yield Break(dim, strides[dim], inner, inner_stride, inner_size)
        inner, inner_stride, inner_size = dim, strides[dim], shape[dim]


def view_conflict(tensor: torch.Tensor, operation: Operation) -> Conflict | None:
    """The innermost pair of dims a refused `view` would have to run together.

    Counted from the inside, the old dims end at certain numbers of elements: (4, 3) after 3 and 12.
    Where two neighbours do not follow each other in memory, the new shape must end a dim there too.

    >>> x = torch.arange(24).reshape(1, 4, 2, 3).transpose(1, 2)
    >>> view_conflict(x, Operation("view", (1, 2, 12)))
    Conflict(outer=2, stride=6, inner=3, inner_stride=1, inner_size=3, target=2, size=12)
    """
    if operation.name != "view":
        return None
    wanted = _sizes(operation.numbers, tensor.numel())
    ends = [prod(wanted[dim:]) for dim in range(len(wanted))]  # elements from each new dim inwards
    real = [dim for dim, size in enumerate(tensor.shape) if size != 1]
    for outer, inner in zip(reversed(real[:-1]), reversed(real[1:]), strict=True):
        stride, inner_stride, size = tensor.stride(outer), tensor.stride(inner), tensor.shape[inner]
        border = prod(tensor.shape[inner:])
        if stride != inner_stride * size and border not in ends:
            target = max(dim for dim, end in enumerate(ends) if end > border)
            return Conflict(outer, stride, inner, inner_stride, size, target, wanted[target])
    return None


def _sizes(wanted: Shape, elements: int) -> Shape:
    """The sizes of view with −1 replaced by what is left for it."""
    known = prod(n for n in wanted if n != -1)
    return tuple(elements // known if n == -1 else n for n in wanted)


def _cures(
    tensor: torch.Tensor, operation: Operation, error: ChainError | None
) -> tuple[Cure, ...]:
    numbers = operation.numbers
    if operation.name == "view" and not error:
        return (
            _try(tensor, (Operation("reshape", numbers),)),
            _try(tensor, (Operation("contiguous"), Operation("view", numbers))),
        )
    if operation.name == "t":
        return (_try(tensor, (Operation("transpose", (-2, -1)),)),)
    return ()


def _try(tensor: torch.Tensor, operations: Chain) -> Cure:
    """Run the cure and see from the storages what it copied."""
    result, copied = tensor, 0
    for name, numbers in operations:
        before, result = result, FORMS[name].run(result, *numbers)
        copied += 0 if _pointer(before) == _pointer(result) else result.numel()
    size = tensor.element_size()
    return Cure(operations, tuple(result.shape), result.stride(), copied, copied * size)
