"""Run a recipe and keep everything: values, shape, strides, shared storage, arithmetic, gradient.

Tensors of more than STORED elements that a pointwise op made on the way to a softmax (scaled and
masked scores) are not kept: the same op makes the same bits again when they are asked for. It is
what makes a trace with every intermediate cheaper than eager code that stores them all.
"""

from __future__ import annotations

import functools
import itertools
import json
import keyword
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from core import ops
from core.config import DTYPES
from core.errors import InputError, Notice, require
from core.recipes import STAGES, Step

STORED = 1 << 20
# Elements worked on at once. Small slabs would stay in the cache, but measured they save nothing,
# and on a busy machine the threads of each operation wait for one another once more per slab.
SLAB = 1 << 24


@dataclass(frozen=True)
class TracedStep:
    """A step of a recipe together with what came of it."""

    step: Step
    trace: Trace

    symbol = property(lambda self: self.step.symbol)
    op = property(lambda self: self.step.op)
    reads = property(lambda self: self.step.reads)
    dims = property(lambda self: self.step.dims)
    stage = property(lambda self: self.step.stage)
    text = property(lambda self: self.step.text)

    @property
    def tensor(self) -> torch.Tensor:
        """The values; made again on each call where the trace does not store them."""
        return self.trace[self.symbol]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.trace.shape(self.symbol)

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements to skip in storage per step along each axis."""
        stored = self.trace.stored.get(self.symbol)
        return tuple(stored.stride()) if stored is not None else _dense(self.shape)

    @property
    def shares(self) -> str | None:
        """The symbol read whose storage this tensor shares, told by the storage's address."""
        mine = self.trace.stored.get(self.symbol)
        for read in self.reads if mine is not None else ():
            theirs = self.trace.stored.get(read)
            if theirs is not None and _address(theirs) == _address(mine):
                return read
        return None

    @property
    def latex(self) -> str:
        """The formula, for example `Q = X \\, W_Q`."""
        formula = self.op.latex(self.reads, self.trace.sizes)
        name = ops.tex(self.symbol)
        return f"{name} = {formula}" if formula else name

    @property
    def code(self) -> str:
        """The line or lines of PyTorch that make this tensor, bit for bit."""
        stored = self.trace.stored.get(self.symbol)
        return self.op.code(self.symbol, self.reads, self.dims, stored)

    @property
    def in_dims(self) -> list[str]:
        return [self.trace.step(read).dims for read in self.reads]

    @property
    def flops(self) -> int:
        """Floating-point operations: a multiply-add counts 2."""
        return self.op.flops(self.trace.sizes, self.in_dims, self.dims)

    @property
    def bytes(self) -> int:
        """Bytes of new memory this step takes in eager code; 0 for a view."""
        if self.shares:
            return 0
        return math.prod(self.shape) * self.trace.element_size(self.symbol)

    @property
    def rule(self) -> dict:
        """What the browser needs to redo a cell's arithmetic."""
        return self.op.describe(self.in_dims, self.dims, self.trace.sizes)


def _address(tensor):
    return tensor.untyped_storage().data_ptr()


def _dense(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def _aligned(tensor):
    """The tensor, copied if its memory starts at an odd address.

    There the last bit of a small product can differ from that of an ordinary tensor, and with it
    from what the script of `source` makes.
    """
    odd = tensor.device.type == "cpu" and tensor.data_ptr() % 64
    return _relaid(tensor, tensor.stride()) if odd else tensor


def _relaid(tensor, stride):
    """The same values laid out in memory with these strides; 0 repeats along an axis."""
    alone = tensor[tuple(slice(0, 1) if step == 0 else slice(None) for step in stride)]
    laid = torch.empty_strided(alone.shape, stride, dtype=tensor.dtype, device=tensor.device)
    return laid.copy_(alone).expand(tensor.shape)


class Trace(Mapping):
    """Every intermediate of one attention computation, in order. Frozen; read by symbol.

    `t["weights"]` is the tensor, `t.steps` the steps, `t.explain(symbol, index)` the arithmetic of
    one element, `t.gradient(symbol, index)` its derivatives, `t.source()` a script that rebuilds
    all of it, `t.notices` what a reader should know.
    """

    __hash__, __eq__ = object.__hash__, object.__eq__  # a trace is itself, whatever it holds

    def __init__(
        self,
        steps: Sequence[Step],
        stored: dict,
        sizes: dict,
        dtype: torch.dtype,
        path: str = "trace.safetensors",
    ):
        self.path = path
        self._records = {step.symbol: step for step in steps}
        self.stored = MappingProxyType(dict(stored))
        self.sizes = MappingProxyType(dict(sizes))
        self.dtype = dtype

    @property
    def steps(self) -> tuple[TracedStep, ...]:
        """The steps in order, each with its tensor."""
        # Made on each call: kept, they would form a ring with the trace, and hundreds of megabytes
        # would lie until the garbage collector comes by.
        return tuple(TracedStep(step, self) for step in self._records.values())

    def __iter__(self):
        return iter(self._records)

    def __len__(self):
        return len(self._records)

    def step(self, symbol: str) -> Step:
        """The step that makes a symbol; InputError names the symbols there are."""
        known = ", ".join(self._records)
        require(symbol in self._records, "no-symbol", got=symbol, known=known)
        return self._records[symbol]

    def __contains__(self, symbol):
        return symbol in self._records

    def __getitem__(self, symbol: str) -> torch.Tensor:
        step = self.step(symbol)
        if symbol in self.stored:
            return self.stored[symbol]
        base, chain = _chain(step, self._records, self.stored)
        made = torch.empty_like(base, memory_format=torch.contiguous_format)
        return _along([*chain, step], base, self.stored, made)

    def shape(self, symbol: str) -> tuple[int, ...]:
        """The sizes of a tensor, without making it."""
        if symbol in self.stored:
            return tuple(self.stored[symbol].shape)
        return self.shape(self.step(symbol).reads[0])  # pointwise: the shape of its first input

    def element_size(self, symbol: str) -> int:
        """Bytes of one element of a tensor."""
        stored = self.stored.get(symbol)
        return stored.element_size() if stored is not None else self.dtype.itemsize

    def rows(self, symbol: str, lead: tuple[int, ...]) -> torch.Tensor:
        """`self[symbol][lead]`, made again for these rows only where it is not stored."""
        if symbol in self.stored:
            return self.stored[symbol][lead]
        step, shape = self.step(symbol), self.shape(symbol)
        whole = tuple(lead) + (0,) * (len(shape) - len(lead))
        parts = [self.rows(step.reads[0], lead)]
        for read in step.reads[1:]:
            other = self.stored[read]
            at = ops.broadcast(whole, other.shape)
            keep = len(lead) - (len(shape) - other.ndim)
            parts.append(other[at[: max(keep, 0)]])
        return step.op.compute(*parts)

    def explain(self, symbol: str, index: Sequence[int]) -> ops.Cell:
        """The arithmetic of one element: its terms, their sources, the text, the value.

        `index` counts from 0, one number per axis; leading axes of size 1 may be left out.

        >>> import core
        >>> cell = core.run(core.AttentionConfig(S=4, H=6, d_k=3)).explain("Q", (0, 1))
        >>> len(cell.terms), abs(cell.total - cell.value) < 1e-5
        (6, True)
        """
        step, shape = self.step(symbol), self.shape(symbol)
        index = self._whole(symbol, index)
        value = float(self.rows(symbol, index))
        if isinstance(step.op, ops.Given):
            return ops.Cell(symbol, index, value, (), value, ops.write(value))
        inputs = [(read, _Rows(self, read)) for read in step.reads]
        dims = [self.step(read).dims for read in step.reads]
        terms, total, text = step.op.cell([*inputs, shape], dims, step.dims, index)
        text = f"{text} = {ops.write(value)}"
        return ops.Cell(symbol, index, value, tuple(terms), total, text)

    def _whole(self, symbol, index) -> tuple[int, ...]:
        shape = self.shape(symbol)
        try:
            index = tuple(map(operator.index, index))
        except TypeError:
            require(False, "no-cell", symbol=symbol, shape=shape, index=index)
        missing = len(shape) - len(index)
        if missing > 0 and all(size == 1 for size in shape[:missing]):
            index = (0,) * missing + index
        ok = len(index) == len(shape) and all(0 <= i < n for i, n in zip(index, shape, strict=True))
        require(ok, "no-cell", symbol=symbol, shape=shape, index=index)
        return index

    def gradient(self, symbol: str, index: Sequence[int]) -> dict[str, torch.Tensor]:
        """∂ element / ∂ every tensor it depends on, by autograd, each in its tensor's shape.

        Tensors the element does not depend on get zeros; boolean masks are left out.

        >>> import core
        >>> t = core.run(core.AttentionConfig(S=4, H=6, d_k=3))
        >>> bool((t.gradient("Q", (0, 1))["X"][0] == t["W_Q"][:, 1]).all())
        True
        """
        index = self._whole(symbol, index)
        boolean = symbol in self.stored and not self.stored[symbol].is_floating_point()
        require(not boolean, "no-gradient", symbol=symbol)
        values = {}
        with torch.inference_mode(False), torch.enable_grad():
            for step in self._records.values():
                if isinstance(step.op, ops.Given):
                    value = self.stored[step.symbol].detach()
                    # A mask that was made in inference mode would not let itself be differentiated.
                    value = value.clone() if value.is_inference() else value
                    values[step.symbol] = value.requires_grad_(value.is_floating_point())
                else:
                    values[step.symbol] = step.op.compute(*(values[r] for r in step.reads))
            asked = {s: v for s, v in values.items() if v.requires_grad}
            element = values[symbol][index]
            found = torch.autograd.grad(element, list(asked.values()), allow_unused=True)
        return {
            s: torch.zeros_like(v) if d is None else d
            for (s, v), d in zip(asked.items(), found, strict=True)
        }

    @functools.cached_property
    def notices(self) -> tuple[Notice, ...]:
        """What the numbers need said: queries that see nothing, NaN, overflow, odd masks."""
        from core.notices import find

        return find(self)

    def source(self, path: str | None = None) -> str:
        """A PyTorch script that rebuilds every tensor of this trace, bit for bit on a CPU.

        Self-contained where all inputs were seeded; else it reads them from the file that
        `save(path)` wrote, by default the one this trace was saved to or loaded from last.
        """
        lines = ["import torch"]
        if any(isinstance(s.op, ops.Given) and not s.op.lines for s in self.steps):
            lines = ["from safetensors.torch import load_file", *lines]
            # A clone starts at an even address, as the tensors of a trace do (see _aligned).
            file = f"load_file({str(path or self.path)!r})"
            lines += ["", f"given = {{name: x.clone() for name, x in {file}.items()}}"]
        sizes = {k: v for k, v in self.sizes.items() if k.isidentifier()}
        lines += ["", *(f"{name} = {size}" for name, size in sizes.items()), ""]
        for step in self.steps:
            lines.append(
                f"{step.code}  # {_commented(step)}" if "\n" not in step.code else step.code
            )
        return "\n".join(lines) + "\n"

    def save(self, path: str) -> None:
        """Write inputs, stored intermediates and the recipe to one safetensors file."""
        # A view is made again from its base; safetensors refuses tensors that share memory.
        kept = {s.symbol: s.tensor for s in self.steps if s.symbol in self.stored and not s.shares}
        about = {
            "steps": [
                [s.symbol, s.op.save(), list(s.reads), s.dims, s.stage, s.text]
                for s in self._records.values()
            ],
            "sizes": dict(self.sizes),
            "dtype": str(self.dtype).removeprefix("torch."),
            "strides": {
                symbol: list(tensor.stride())
                for symbol, tensor in kept.items()
                if tensor.stride() != _dense(tensor.shape)
            },
        }
        dense = {symbol: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
                 for symbol, tensor in kept.items()}  # fmt: skip
        save_file(dense, path, metadata={"qkv_trace": json.dumps(about)})
        self.path = str(path)

    @classmethod
    def load(cls, path: str) -> Trace:
        """Read what `save` wrote: the same values in the same strides, on the CPU.

        Raises InputError if the file is not such a trace. Code is not taken from a file: `source`
        of a loaded trace reads the inputs from it instead.
        """
        try:
            with safe_open(path, framework="pt") as file:
                about = json.loads(file.metadata()["qkv_trace"])
                kept = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return _restored(about, kept, str(path))
        except Exception as problem:  # a stranger's file can be wrong in every way there is
            reason = type(problem).__name__
            raise InputError("file", name=str(path), reason=reason) from problem


def _restored(about: dict, kept: dict[str, torch.Tensor], path: str) -> Trace:
    """A trace from what a file held, or any exception if that does not make one."""
    sizes, dtype = dict(about["sizes"]), about["dtype"]
    _check(dtype in DTYPES)
    _check(all(name.isidentifier() and type(n) is int and n >= 0 for name, n in sizes.items()))
    steps = [_step(*record) for record in about["steps"]]
    _check(steps and kept.keys() <= {step.symbol for step in steps})
    for symbol, stride in about["strides"].items():
        kept[symbol] = _laid_as_saved(kept[symbol], stride)
    stored, shapes, chained = {}, {}, _chained(steps)
    for step in steps:
        _check(step.symbol not in shapes)
        _check(_same_names(step, steps))
        shapes[step.symbol] = _fitting(step, kept.get(step.symbol), shapes, sizes)
        if step.symbol in kept:
            stored[step.symbol] = kept[step.symbol]
        elif not _derived(step, stored, chained):
            # Only what costs next to nothing is missing from a file: views and small tables.
            _check(isinstance(step.op, ops.Rearrange | ops.Pointwise))
            stored[step.symbol] = step.op.compute(*(stored[read] for read in step.reads))
    return Trace(steps, stored, sizes, getattr(torch, dtype), path)


def _check(condition) -> None:
    if not condition:
        raise ValueError


def _step(symbol, op, reads, dims, stage, text) -> Step:
    """A step from its record in a file. What ends up in a script must be a plain name."""
    _check(symbol.isidentifier() and not keyword.iskeyword(symbol) and stage in STAGES)
    _check(isinstance(text, str) and text.isidentifier())
    op = replace(made, lines="") if isinstance(made := ops.load(op), ops.Given) else made
    return Step(symbol, op, tuple(reads), dims, stage, text)


def _laid_as_saved(tensor, stride):
    extent = sum((n - 1) * step for n, step in zip(tensor.shape, stride, strict=True))
    _check(all(type(step) is int and step >= 0 for step in stride))
    _check(extent < 1024 * (tensor.numel() + 1))  # a few bytes must not claim all memory
    return _relaid(tensor, stride)


def _same_names(step: Step, steps: Sequence[Step]) -> bool:
    """Whether a rearrangement finds each name of what it reads among its own."""
    if not isinstance(step.op, ops.Rearrange):
        return True
    (read,) = (other.dims for other in steps if other.symbol in step.reads)
    before, after = step.op.pattern(read, step.dims)
    return {name for axis in before for name in axis} <= {name for axis in after for name in axis}


def _fitting(step: Step, kept, before: dict, sizes: dict):
    """The shape a step makes, as a tensor without memory; its dims and its file must agree."""
    wanted = [math.prod(sizes[atom] for atom in axis) for axis in ops.axes(step.dims)]
    if isinstance(step.op, ops.Given):
        made = kept.to("meta")
        # A mask may have sides of 1 that stand for all positions.
        wanted = [1 if n == 1 else want for n, want in zip(made.shape, wanted, strict=True)]
    else:
        made = step.op.compute(*(before[read] for read in step.reads))
    _check(list(made.shape) == wanted)
    _check(kept is None or (kept.shape == made.shape and kept.dtype == made.dtype))
    return made


class _Rows:
    """Reads single elements and rows of a tensor that a trace may not store."""

    def __init__(self, trace, symbol):
        self.trace, self.symbol, self.shape = trace, symbol, trace.shape(symbol)
        self.ndim = len(self.shape)

    def __getitem__(self, index):
        *lead, last = index if len(index) == self.ndim else (*index, None)
        row = _row(self.trace, self.symbol, tuple(lead))
        return row if last is None else row[last]

    def line(self, index) -> list[float]:
        """All numbers along the axis at which `index` holds None."""
        whole = tuple(slice(None) if i is None else i for i in index)
        return self.trace[self.symbol][whole].reshape(-1).tolist()


def _row(trace, symbol, lead):
    row = trace.rows(symbol, lead)
    return row if row.ndim < 2 else row.reshape(-1)


def _commented(step: TracedStep) -> str:
    return f"({', '.join(step.dims.split())}) = {tuple(step.shape)}"


def _chained(steps: Sequence[Step]) -> set[str]:
    """Symbols of cheap steps that only row by row steps read, as the first of what they read."""
    local = {step.symbol for step in steps if step.op.local}
    for step in steps:
        first = step.reads[:1] if step.op.rowwise else ()
        local -= set(step.reads) - set(first)
    return local


def _derived(step: Step, stored, chained: set[str]) -> bool:
    """Whether a step's result is made again on demand rather than kept."""
    if step.symbol not in chained:
        return False
    first = stored.get(step.reads[0])
    return first is None or first.numel() > STORED


@torch.no_grad()
def run(steps: Sequence[Step], given: dict[str, torch.Tensor], sizes: dict[str, int]) -> Trace:
    """Compute a recipe on tensors, in order, and keep every intermediate.

    `given` holds a tensor for each Given step, `sizes` the size of each named dim.
    """
    records, stored, chained = {}, {}, _chained(steps)
    for step in steps:
        op, inputs = step.op, [stored.get(read) for read in step.reads]
        if isinstance(op, ops.Pointwise):
            op = op.against(functools.partial(_reach, step, records, stored))
        if isinstance(op, ops.Given):
            stored[step.symbol] = _aligned(given[step.symbol].detach())
        elif _derived(step, stored, chained):
            pass
        elif all(tensor is not None for tensor in inputs):
            op, stored[step.symbol] = op.settle(*inputs)
        else:
            op, stored[step.symbol] = _by_slab(step, records, stored)
        records[step.symbol] = replace(step, op=op)
    dtype = next(t.dtype for t in stored.values() if t.is_floating_point())
    return Trace(list(records.values()), stored, sizes, dtype)


def _chain(step: Step, records, stored) -> tuple[torch.Tensor, list[Step]]:
    """What a step comes from: the next stored tensor, and the steps between that made no tensor."""
    chain, read = [], step.reads[0]
    while read not in stored:
        chain.insert(0, records[read])
        read = records[read].reads[0]
    return stored[read], chain


def _along(chain: Sequence[Step], base, stored, out, slab=None):
    """Pointwise steps one after the other in the memory of `out`; of a slab, if one is given."""
    x = base if slab is None else base[slab]
    for step in chain:
        others = [stored[read] for read in step.reads[1:]]
        others = others if slab is None else [_under(slab, x, base.ndim) for x in others]
        x = step.op.compute(x, *others, out=out)
    return x


def _reach(step: Step, records, stored) -> float:
    """A bound on the magnitudes of a step's first input; ∞ where they may pass their range."""
    base, chain = _chain(step, records, stored)
    reach = ops.peak(base)
    for link in chain:
        reach = link.op.reach(reach)
    return math.inf if reach > torch.finfo(base.dtype).max else reach


def _by_slab(step: Step, records, stored):
    """A row-wise op over a chain of pointwise ones, slab by slab in the place of the result."""
    base, chain = _chain(step, records, stored)
    made, op = torch.empty_like(base, memory_format=torch.contiguous_format), step.op

    def first(slab, out):
        return _along(chain, base, stored, out, slab)

    for slab in _slabs(base.shape, SLAB):
        out = made[slab]
        if op.failed(op.compute(first(slab, out), out=out)):
            op, _ = op.settle(first(slab, torch.empty_like(out)), out=out)
    return op, made


def _slabs(shape: Sequence[int], most: int):
    """Slices over all axes that cut a tensor into blocks of about `most` elements, of whole rows.

    >>> [[(s.start, s.stop) for s in slab] for slab in _slabs((2, 3, 4), 8)][:2]
    [[(0, 1), (0, 2), (0, 4)], [(0, 1), (2, 3), (0, 4)]]
    """
    axis, inner = len(shape) - 2, shape[-1]
    while axis > 0 and inner * shape[axis] <= most:
        inner *= shape[axis]
        axis -= 1
    steps = [1] * axis + [max(1, most // inner)] + list(shape[axis + 1 :])
    cuts = (
        [slice(i, min(i + step, n)) for i in range(0, n, step)]
        for n, step in zip(shape, steps, strict=True)
    )
    return itertools.product(*cuts)


def _under(slab, other, ndim):
    """The part of a broadcast operand that lies under a slab."""
    own = slab[ndim - other.ndim :]
    return other[tuple(slice(None) if n == 1 else s for n, s in zip(other.shape, own, strict=True))]
