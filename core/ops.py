"""The vocabulary: each op computes, explains one cell, and states its formula, code and cost.

An op never sees symbols of its own; a step (see `recipes`) says what it reads and what it makes.
Axes are named: `"B h S d_k"`, a composite axis is `"h·d_k"`. An axis of size 1 broadcasts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import ClassVar

import torch

from core.config import DTYPES, PAIRS
from core.numbers import factor as as_factor
from core.numbers import write


@dataclass(frozen=True)
class Source:
    """One input cell that an output cell was made from."""

    symbol: str
    index: tuple[int, ...]
    value: float


@dataclass(frozen=True)
class Term:
    """One summand of a cell's arithmetic: the cells it reads, and the number it contributes."""

    sources: tuple[Source, ...]
    value: float


@dataclass(frozen=True)
class Cell:
    """The arithmetic of one element.

    `terms` are what is added (for softmax: the exponentials, own key first in `own`), `total` is
    their result in float64, `value` the element the engine holds, `text` the arithmetic in words
    of mathematics only.
    """

    symbol: str
    index: tuple[int, ...]
    value: float
    terms: tuple[Term, ...]
    total: float
    text: str


def axes(dims: str) -> list[list[str]]:
    """Split named dims into axes of atoms.

    >>> axes("B S h·d_k")
    [['B'], ['S'], ['h', 'd_k']]
    """
    return [axis.split("·") for axis in dims.split()]


def tex(symbol: str) -> str:
    """Write a symbol in LaTeX.

    >>> tex("W_Q"), tex("scores"), tex("Q_heads")
    ('W_Q', '\\\\mathrm{scores}', 'Q_{\\\\mathrm{heads}}')
    """
    head, _, tail = symbol.partition("_")
    if len(head) > 1:
        name = symbol.replace("_", r"\_")
        return rf"\mathrm{{{name}}}"
    if len(tail) > 1:
        tail = rf"{{\mathrm{{{tail}}}}}"
    return f"{head}_{tail}" if tail else head


def broadcast(index, shape) -> tuple[int, ...]:
    """The cell of a smaller tensor under `index`, aligned from the right; size 1 is always at 0.

    >>> broadcast((1, 2, 3), (2, 1, 4)), broadcast((1, 2, 3), (4,))
    ((1, 0, 3), (3,))
    """
    index = tuple(index)[len(index) - len(shape) :]
    return tuple(0 if size == 1 else i for i, size in zip(index, shape, strict=True))


def _number(tensor, index) -> float:
    return float(tensor[tuple(index)])


@dataclass(frozen=True)
class Op:
    """One kind of tensor operation.

    `local`: cheap, and each cell of the result needs only that cell of the first input.
    `rowwise`: each row of the result needs only that row.
    """

    kind: ClassVar[str] = ""
    local: ClassVar[bool] = False
    rowwise: ClassVar[bool] = False
    effect: ClassVar[str] = "computes"  # computes | views | copies

    def compute(self, *inputs, out=None):
        raise NotImplementedError

    def cell(self, inputs, in_dims, out_dims, index) -> tuple[list[Term], float, str]:
        raise NotImplementedError

    def latex(self, reads, sizes) -> str:
        raise NotImplementedError

    def code(self, symbol, reads, dims, tensor) -> str:
        raise NotImplementedError

    def flops(self, sizes, in_dims, out_dims) -> int:
        return 0

    def describe(self, in_dims, out_dims, sizes) -> dict:
        """What the browser needs to redo the arithmetic of a cell."""
        return {"kind": self.kind}

    def equation(self, reads) -> list[dict]:
        """Operands and operators in reading order."""
        return [{"symbol": read} for read in reads]

    def save(self) -> dict:
        """Plain data from which `load` makes an equal op."""
        return {"kind": self.kind} | {f.name: getattr(self, f.name) for f in fields(self)}

    def settle(self, *inputs, out=None):
        """Compute, and say which form of this op the numbers needed (see `Softmax`)."""
        return self, self.compute(*inputs, out=out)


def volume(dims: str, sizes: dict[str, int]) -> int:
    """Number of elements of a tensor with these named dims."""
    return math.prod(sizes[atom] for axis in axes(dims) for atom in axis)


@dataclass(frozen=True)
class Given(Op):
    """A tensor that is handed in. `lines` is the code that makes it, if it can be made again."""

    kind: ClassVar[str] = "given"
    lines: str = ""

    def cell(self, inputs, in_dims, out_dims, index):
        return [], math.nan, ""

    def latex(self, reads, sizes):
        return ""

    def code(self, symbol, reads, dims, tensor):
        if self.lines:
            return f"{symbol} = {self.lines}"
        read, stride = f'given["{symbol}"]', tuple(tensor.stride())
        if stride == tuple(torch.empty(tensor.shape, device="meta").stride()):
            return f"{symbol} = {read}"
        # An axis of stride 0 repeats one place in memory: lay that place, then expand.
        alone = ", ".join(":1" if step == 0 else ":" for step in stride)
        shape = tuple(1 if step == 0 else n for n, step in zip(tensor.shape, stride, strict=True))
        laid = f"torch.empty_strided({shape}, {stride}, dtype={tensor.dtype})"
        return f"{symbol} = {laid}.copy_({read}[{alone}]).expand({tuple(tensor.shape)})"


@dataclass(frozen=True)
class Contract(Op):
    """A product summed over the last axis of the first operand: X (S, H) times W (H, d_k).

    `wide`: if not 0, the largest number of the type, and cells that are not finite are summed
    again in float64: +1e40 − 1e40 is 0, while float32 makes it ∞ − ∞ = NaN. In that sum an operand
    that grew to ±∞ counts as the largest number. A sum that is too large for the type stays ±∞.
    `settle` turns it on where it changes a cell.
    """

    kind: ClassVar[str] = "contract"
    wide: float = 0.0

    @staticmethod
    def right(b):
        """The second operand as `matmul` takes it."""
        return b

    def compute(self, a, b, *, out=None):
        plain = torch.matmul(a, self.right(b), out=out)
        return _summed_again(plain, a, self.right(b), self.wide) if self.wide else plain

    def settle(self, a, b, *, out=None):
        plain = self.compute(a, b, out=out)
        if self.wide or not _overflows(a, b, plain):
            return self, plain
        most = torch.finfo(plain.dtype).max
        again = _summed_again(plain, a, self.right(b), most)
        same = bool(((again == plain) | (again.isnan() & plain.isnan())).all())
        return (self, plain) if same else (replace(self, wide=most), again)

    @staticmethod
    def operands(out):
        """Index of both operands, all but the summed axis, for the output index `out`."""
        *lead, i, j = out
        return lambda k: ((*lead, i, k), (*lead, k, j))

    def cell(self, inputs, in_dims, out_dims, index):
        (left, a), (right, b) = inputs[:2]
        at, terms = self.operands(index), []
        xs, ys = (x.line(broadcast(i, x.shape)) for i, x in zip(at(None), (a, b), strict=True))
        for k, (x, y) in enumerate(zip(xs, ys, strict=True)):
            i, j = at(k)
            i, j = broadcast(i, a.shape), broadcast(j, b.shape)
            sources = (Source(left, i, x), Source(right, j, y))
            terms.append(Term(sources, self._counted(x) * self._counted(y)))
        return terms, self._total(terms), _sum_of_products(terms)

    def _counted(self, x: float) -> float:
        """A number as it counts in the sum."""
        return math.copysign(self.wide, x) if self.wide and math.isinf(x) else x

    def _total(self, terms) -> float:
        """The sum of all products, exactly rounded, also where one passes float64's range."""
        pairs = [[self._counted(source.value) for source in term.sources] for term in terms]
        if not all(math.isfinite(x) for pair in pairs for x in pair):
            return sum(term.value for term in terms)
        if all(math.isfinite(term.value) for term in terms):
            return math.fsum(term.value for term in terms)
        exact = sum(Fraction(a) * Fraction(b) for a, b in pairs)
        try:
            return float(exact)
        except OverflowError:
            return math.copysign(math.inf, exact)

    def latex(self, reads, sizes):
        return rf"{tex(reads[0])} \, {tex(reads[1])}"

    _right_code: ClassVar[str] = ""

    def code(self, symbol, reads, dims, tensor):
        a, b = reads[0], f"{reads[1]}{self._right_code}"
        if not self.wide:
            return f"{symbol} = {a} @ {b}"
        a64, b64 = (f"({x}.double().clamp(-most, most) * 2.0**-520)" for x in (a, b))
        wide = f"{a64} @ {b64} * 2.0**520 * 2.0**520"
        chosen = f"torch.where({symbol}.isfinite(), {symbol}, wide.to({symbol}.dtype))"
        lines = [f"{symbol} = {a} @ {b}", f"most = {self.wide!r}", f"wide = {wide}"]
        return "\n".join([*lines, f"{symbol} = {chosen}"])

    def flops(self, sizes, in_dims, out_dims):
        return 2 * volume(in_dims[0].split()[-1], sizes) * volume(out_dims, sizes)

    def describe(self, in_dims, out_dims, sizes):
        # Names of their own: in self-attention rows and columns of the scores are both called S.
        kept = [f"{axis}#{i}" for i, axis in enumerate(out_dims.split())]
        left, right = (list(index) for index in self.operands(kept)("sum"))
        rank = len(in_dims[1].split())
        return {"kind": "contract", "in": [left, right[-rank:]], "out": kept, "sum": ["sum"]}

    def equation(self, reads):
        return [{"symbol": reads[0]}, {"operator": "@"}, {"symbol": reads[1]}]


@dataclass(frozen=True)
class Compare(Contract):
    """The contraction Q·Kᵀ: both operands keep the summed axis last."""

    @staticmethod
    def operands(out):
        *lead, i, j = out
        return lambda k: ((*lead, i, k), (*lead, j, k))

    _right_code: ClassVar[str] = ".transpose(-2, -1)"

    @staticmethod
    def right(b):
        return b.transpose(-2, -1)

    def latex(self, reads, sizes):
        return rf"{tex(reads[0])} \, {tex(reads[1])}^\top"

    def equation(self, reads):
        return [
            {"symbol": reads[0]},
            {"operator": "@"},
            {"symbol": reads[1], "transpose": True},
        ]

    def save(self):
        return {"kind": "compare", "wide": self.wide}


def peak(tensor: torch.Tensor) -> float:
    """The largest magnitude in a tensor; NaN if it holds one.

    >>> peak(torch.tensor([1.0, -3.0]))
    3.0
    """
    if not tensor.numel():
        return 0.0
    low, high = torch.aminmax(tensor)
    return max(abs(float(low)), abs(float(high)))


def _overflows(a, b, result) -> bool:
    """Whether a product holds a cell that is not finite, told from its operands if they are few."""
    if result.numel() > a.numel() + b.numel():
        # Half of the range: the sums of a kernel are rounded, and this must be certain.
        most = 2 * peak(a) * peak(b) * a.shape[-1]
        if most <= torch.finfo(result.dtype).max:
            return False
    return not math.isfinite(peak(result))


def _summed_again(plain, a, b, most):
    """The product, its cells that are not finite computed in float64 with room to spare."""
    place = "cpu" if plain.device.type == "mps" else plain.device  # no float64 there
    # Powers of 2 lose no digit, and products of numbers this small cannot overflow.
    a, b = (x.to(place, torch.float64).clamp(-most, most) * 2.0**-520 for x in (a, b))
    wide = a @ b * 2.0**520 * 2.0**520
    return torch.where(plain.isfinite(), plain, wide.to(plain.device, plain.dtype))


def _sum_of_products(terms, most: int = 8) -> str:
    written = ["·".join(as_factor(s.value) for s in term.sources) for term in terms]
    if len(written) > most:
        written = [*written[:3], f"… ({len(written) - 4})", written[-1]]
    return " + ".join(written)


@dataclass(frozen=True)
class Rearrange(Op):
    """Names change their axis, no number changes. Subclasses say which torch call does it."""

    kind: ClassVar[str] = "gather"

    def pattern(self, in_dims: str, out_dims: str):
        """Axes of atoms before and after; equal atoms mean equal positions."""
        return axes(in_dims), axes(out_dims)

    def origin(self, shape, in_dims, out_dims, index, out_shape) -> tuple[int, ...]:
        """The input cell that an output cell was taken from."""
        before, after = self.pattern(in_dims, out_dims)
        sizes = self._atom_sizes(before, shape) | self._atom_sizes(after, out_shape)
        sizes = self._solve(before, shape, self._solve(after, out_shape, sizes))
        position = {}
        for axis, i in zip(after, index, strict=True):
            for atom in reversed(axis):
                i, position[atom] = divmod(i, sizes[atom])
        result = []
        for axis in before:
            i = 0
            for atom in axis:
                i = i * sizes[atom] + position[atom]
            result.append(i)
        return tuple(result)

    @staticmethod
    def _atom_sizes(pattern, shape):
        return {axis[0]: n for axis, n in zip(pattern, shape, strict=True) if len(axis) == 1}

    @staticmethod
    def _solve(pattern, shape, sizes):
        """Find the one unknown atom of a composite axis (the r of g·r) from its length."""
        sizes = dict(sizes)
        for axis, n in zip(pattern, shape, strict=True):
            unknown = [atom for atom in axis if atom not in sizes]
            if unknown:
                sizes[unknown[0]] = n // math.prod(sizes[a] for a in axis if a in sizes)
        return sizes

    def cell(self, inputs, in_dims, out_dims, index):
        ((symbol, tensor), out_shape) = inputs[0], inputs[-1]
        at = self.origin(tensor.shape, in_dims[0], out_dims, index, out_shape)
        value = _number(tensor, at)
        return [Term((Source(symbol, at, value),), value)], value, f"{symbol}{list(at)}"

    def describe(self, in_dims, out_dims, sizes):
        before, after = self.pattern(in_dims[0], out_dims)
        atoms = {atom for axis in before + after for atom in axis}
        return {
            "kind": self.kind,
            "in": before,
            "out": after,
            "sizes": {atom: sizes[atom] for atom in sorted(atoms)},
        }

    def equation(self, reads):
        return [{"symbol": reads[0]}, {"operator": "→"}]


@dataclass(frozen=True)
class Split(Rearrange):
    """(S, h·d_k) → (S, h, d_k): the same memory read with one axis more."""

    effect: ClassVar[str] = "views"
    heads: int = 1

    def compute(self, x, *, out=None):
        return x.view(*x.shape[:-1], self.heads, x.shape[-1] // self.heads)

    def latex(self, reads, sizes):
        return rf"\mathrm{{view}}({tex(reads[0])})"

    def code(self, symbol, reads, dims, tensor):
        return f"{symbol} = {reads[0]}.view({', '.join(dims.split())})"

    def save(self):
        return {"kind": "split", "heads": self.heads}


@dataclass(frozen=True)
class Swap(Rearrange):
    """(S, h, d) ↔ (h, S, d): two axes trade places, the memory stays."""

    effect: ClassVar[str] = "views"

    def compute(self, x, *, out=None):
        return x.transpose(-3, -2)

    def latex(self, reads, sizes):
        return rf"\mathrm{{transpose}}({tex(reads[0])})"

    def code(self, symbol, reads, dims, tensor):
        return f"{symbol} = {reads[0]}.transpose(-3, -2)"

    def save(self):
        return {"kind": "swap"}


@dataclass(frozen=True)
class Merge(Rearrange):
    """(S, h, d_v) → (S, h·d_v): heads side by side again; copies if the memory is out of order."""

    effect: ClassVar[str] = "copies"

    def compute(self, x, *, out=None):
        return x.reshape(*x.shape[:-2], -1)

    def latex(self, reads, sizes):
        return rf"\mathrm{{reshape}}({tex(reads[0])})"

    def code(self, symbol, reads, dims, tensor):
        sides = ", ".join(axis.replace("·", " * ") for axis in dims.split())
        return f"{symbol} = {reads[0]}.reshape({sides})"

    def save(self):
        return {"kind": "merge"}


@dataclass(frozen=True)
class Repeat(Rearrange):
    """(g, T, d) → (h, T, d): each key/value head serves h / g query heads in a row."""

    effect: ClassVar[str] = "copies"
    times: int = 1

    def pattern(self, in_dims, out_dims):
        before, after = axes(in_dims), axes(out_dims)
        return before, [["g", "r"] if axis == ["h"] else axis for axis in after]

    def compute(self, x, *, out=None):
        return x.repeat_interleave(self.times, dim=-3)

    def latex(self, reads, sizes):
        return rf"\mathrm{{repeat}}_{{h/g={self.times}}}({tex(reads[0])})"

    def code(self, symbol, reads, dims, tensor):
        return f"{symbol} = {reads[0]}.repeat_interleave(h // g, dim=-3)"

    def save(self):
        return {"kind": "repeat", "times": self.times}


@dataclass(frozen=True)
class Concat(Op):
    """The past, then the new: rows joined along the source axis (second to last)."""

    kind: ClassVar[str] = "concat"
    effect: ClassVar[str] = "copies"

    def compute(self, past, new, *, out=None):
        return torch.cat((past, new), dim=-2)

    def cell(self, inputs, in_dims, out_dims, index):
        past = inputs[0][1].shape[-2]
        row = index[-2]
        symbol, tensor = inputs[0] if row < past else inputs[1]
        at = (*index[:-2], row if row < past else row - past, index[-1])
        value = _number(tensor, at)
        return [Term((Source(symbol, at, value),), value)], value, f"{symbol}{list(at)}"

    def latex(self, reads, sizes):
        return rf"\mathrm{{cat}}({tex(reads[0])},\, {tex(reads[1])})"

    def code(self, symbol, reads, dims, tensor):
        return f"{symbol} = torch.cat(({reads[0]}, {reads[1]}), dim=-2)"

    def describe(self, in_dims, out_dims, sizes):
        return {"kind": self.kind, "axis": -2}

    def equation(self, reads):
        return [{"symbol": reads[0]}, {"operator": "⧺"}, {"symbol": reads[1]}]


@dataclass(frozen=True)
class Pointwise(Op):
    """An op whose result cell needs the same cell of its first input only."""

    local: ClassVar[bool] = True
    rowwise: ClassVar[bool] = True
    per_element: ClassVar[int] = 1

    def against(self, reach: Callable[[], float]) -> Pointwise:
        """The form of this op for an input of magnitude up to `reach()`: no NaN comes of ±∞."""
        return self

    def reach(self, reach: float) -> float:
        """A bound on the magnitudes of the result, from one on those of the first input."""
        return reach

    def flops(self, sizes, in_dims, out_dims):
        return self.per_element * volume(out_dims, sizes)


@dataclass(frozen=True)
class Scale(Pointwise):
    """x · factor. `root` is set where the factor is 1/√d_k, so that the formula can say so."""

    kind: ClassVar[str] = "scale"
    factor: float = 1.0
    root: int = 0
    half: bool = False  # the square root of the usual factor, applied to q and to k
    finite: bool = False  # 0·∞ is 0: the infinity is a finite number that grew too large

    def against(self, reach):
        return replace(self, finite=True) if self.factor == 0 and reach() == math.inf else self

    def reach(self, reach):
        return reach * abs(self.factor) if self.factor else 0.0

    def compute(self, x, *, out=None):
        if self.finite:
            x = x.masked_fill(x.isinf(), 0.0)
        return torch.mul(x, self.factor, out=out)

    def cell(self, inputs, in_dims, out_dims, index):
        symbol, tensor = inputs[0]
        x = _number(tensor, index)
        product = 0.0 if self.finite and math.isinf(x) else x * self.factor
        term = Term((Source(symbol, tuple(index), x),), product)
        shown = f"{write(x)} / √{self.root}" if self._plain() else f"{write(x)}·{self._text()}"
        return [term], term.value, shown

    def _plain(self):
        return self.root and not self.half

    def _text(self):
        return f"1/⁴√{self.root}" if self.root else as_factor(self.factor)

    def latex(self, reads, sizes):
        if self._plain():
            return rf"\frac{{{tex(reads[0])}}}{{\sqrt{{d_k}}}}"
        by = r"d_k^{-1/4}" if self.root else write(self.factor).replace("−", "-")
        return rf"{tex(reads[0])} \cdot {by}"

    def code(self, symbol, reads, dims, tensor):
        if not self.root:
            x = f"{reads[0]}.masked_fill({reads[0]}.isinf(), 0.0)" if self.finite else reads[0]
            return f"{symbol} = {x} * {self.factor!r}"
        by = "d_k ** -0.25" if self.half else "d_k ** -0.5"
        return f"{symbol} = {reads[0]} * {by}"

    def describe(self, in_dims, out_dims, sizes):
        shown = f"1/√{self.root}" if self._plain() else self._text()
        return {"kind": self.kind, "factor": self.factor, "tex": shown}

    def equation(self, reads):
        sign = f"÷ √{self.root}" if self._plain() else f"× {self._text()}"
        return [{"symbol": reads[0]}, {"operator": sign}]


@dataclass(frozen=True)
class Softcap(Pointwise):
    """cap · tanh(x / cap): large scores are bent towards ±cap, small ones hardly move."""

    kind: ClassVar[str] = "softcap"
    per_element: ClassVar[int] = 3
    cap: float = 50.0

    def reach(self, reach):
        return min(reach, self.cap)

    def compute(self, x, *, out=None):
        return torch.mul(torch.tanh(torch.div(x, self.cap, out=out), out=out), self.cap, out=out)

    def cell(self, inputs, in_dims, out_dims, index):
        symbol, tensor = inputs[0]
        x = _number(tensor, index)
        value = self.cap * math.tanh(x / self.cap)
        term = Term((Source(symbol, tuple(index), x),), value)
        cap = write(self.cap)
        return [term], value, f"{cap}·tanh({write(x)} / {cap})"

    def latex(self, reads, sizes):
        cap = write(self.cap)
        return rf"{cap} \tanh\left(\frac{{{tex(reads[0])}}}{{{cap}}}\right)"

    def code(self, symbol, reads, dims, tensor):
        return f"{symbol} = torch.tanh({reads[0]} / {self.cap!r}) * {self.cap!r}"

    def describe(self, in_dims, out_dims, sizes):
        return {"kind": self.kind, "cap": self.cap}

    def equation(self, reads):
        return [{"operator": "softcap"}, {"symbol": reads[0]}]


@dataclass(frozen=True)
class Bias(Pointwise):
    """x + bias: a float mask is added to the scores.

    `hides`: a bias of −∞ hides even a score that grew to +∞, where IEEE would make it NaN.
    """

    kind: ClassVar[str] = "bias"
    hides: bool = False

    def against(self, reach):
        return replace(self, hides=True) if reach() == math.inf else self

    def reach(self, reach):
        return math.inf  # who knows what is added

    def compute(self, x, bias, *, out=None):
        result = torch.add(x, bias, out=out)
        return result.masked_fill_(bias == -math.inf, -math.inf) if self.hides else result

    def cell(self, inputs, in_dims, out_dims, index):
        (symbol, tensor), (name, bias) = inputs[:2]
        at = broadcast(index, bias.shape)
        terms = [Term((Source(symbol, tuple(index), x),), x) for x in [_number(tensor, index)]] + [
            Term((Source(name, at, b),), b) for b in [_number(bias, at)]
        ]
        hidden = self.hides and terms[1].value == -math.inf
        total = -math.inf if hidden else terms[0].value + terms[1].value
        return terms, total, f"{write(terms[0].value)} + {as_factor(terms[1].value)}"

    def latex(self, reads, sizes):
        return rf"{tex(reads[0])} + {tex(reads[1])}"

    def code(self, symbol, reads, dims, tensor):
        hidden = f".masked_fill({reads[1]} == -torch.inf, -torch.inf)"
        if self.hides:
            return f"{symbol} = ({reads[0]} + {reads[1]}){hidden}"
        return f"{symbol} = {reads[0]} + {reads[1]}"

    def equation(self, reads):
        return [{"symbol": reads[0]}, {"operator": "+"}, {"symbol": reads[1]}]


@dataclass(frozen=True)
class Mask(Pointwise):
    """Where the mask is True the score stays, elsewhere it becomes −∞."""

    kind: ClassVar[str] = "mask"
    per_element: ClassVar[int] = 0  # a choice, not arithmetic

    def compute(self, x, mask, *, out=None):
        hidden = torch.full((), -math.inf, dtype=x.dtype, device=x.device)
        return torch.where(mask, x, hidden, out=out)

    def cell(self, inputs, in_dims, out_dims, index):
        (symbol, tensor), (name, mask) = inputs[:2]
        at = broadcast(index, mask.shape)
        x, seen = _number(tensor, index), bool(mask[at])
        value = x if seen else -math.inf
        sources = (Source(symbol, tuple(index), x), Source(name, at, float(seen)))
        return [Term(sources, value)], value, f"{name}{list(at)} = {seen}"

    def latex(self, reads, sizes):
        return (
            rf"\begin{{cases}} {tex(reads[0])} & {tex(reads[1])} = 1 \\"
            rf" -\infty & {tex(reads[1])} = 0 \end{{cases}}"
        )

    def code(self, symbol, reads, dims, tensor):
        return f"{symbol} = {reads[0]}.masked_fill(~{reads[1]}, -torch.inf)"

    def equation(self, reads):
        x, mask = reads  # a choice, not a product: mask ? x : −∞
        return [
            {"symbol": mask},
            {"operator": "?"},
            {"symbol": x},
            {"operator": ": −∞"},
        ]


_HALVES = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Rms(Op):
    """x / √(mean of x² over the last axis + eps) · gain: each row to length √d, then stretched.

    Half types are squared in float32, as transformers does: float16 makes ∞ of 256².
    """

    kind: ClassVar[str] = "rms"
    rowwise: ClassVar[bool] = True
    eps: float = 1e-6

    def compute(self, x, gain, *, out=None):
        wide = x.float() if x.dtype in _HALVES else x
        even = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return torch.mul(even.to(x.dtype), gain, out=out)

    def cell(self, inputs, in_dims, out_dims, index):
        (symbol, tensor), (name, gain) = inputs[:2]
        *row, j = index
        xs, at = tensor[tuple(row)].tolist(), broadcast(index, gain.shape)
        mean, g = math.fsum(x * x for x in xs) / len(xs), _number(gain, at)
        own = Source(symbol, tuple(index), xs[j])
        others = [Source(symbol, (*row, k), x) for k, x in enumerate(xs) if k != j]
        total = xs[j] / math.sqrt(mean + self.eps) * g
        length = f"√({as_factor(mean)} + {write(self.eps)})"
        shown = f"{write(xs[j])} / {length}·{as_factor(g)}"
        return [Term((own, Source(name, at, g), *others), total)], total, shown

    def latex(self, reads, sizes):
        x = tex(reads[0])
        mean = rf"\mathrm{{mean}}({x}^2) + {write(self.eps)}"
        return rf"\frac{{{x}}}{{\sqrt{{{mean}}}}} \odot {tex(reads[1])}"

    def code(self, symbol, reads, dims, tensor):
        x, gain = reads
        half = tensor.dtype in _HALVES
        wide = f"{x}.float()" if half else x
        even = f"{wide} * torch.rsqrt({wide}.pow(2).mean(-1, keepdim=True) + {self.eps!r})"
        return f"{symbol} = {f'({even}).to({x}.dtype)' if half else even} * {gain}"

    def flops(self, sizes, in_dims, out_dims):
        rows = volume(out_dims, sizes) // volume(out_dims.split()[-1], sizes)
        return 4 * volume(out_dims, sizes) + 2 * rows  # square, add, two products; eps, root

    def describe(self, in_dims, out_dims, sizes):
        return {"kind": self.kind, "eps": self.eps}

    def equation(self, reads):
        return [{"operator": "rms"}, {"symbol": reads[0]}, {"operator": "⊙"}, {"symbol": reads[1]}]


@dataclass(frozen=True)
class Rotate(Op):
    """Pairs of entries turned by the angle of their position: x·cos + partner·sin.

    `pairs="halves"`: entry j of the first half goes with entry j of the second (Llama, GPT-NeoX).
    "interleaved": entries 2i and 2i + 1 go together (the first paper, GPT-J). The first of a pair
    takes its partner with a minus. `width`: how many entries are turned, the rest staying as it is;
    0 for all.
    """

    kind: ClassVar[str] = "rotate"
    rowwise: ClassVar[bool] = True
    pairs: str = "halves"
    width: int = 0

    def compute(self, x, cos, sin, *, out=None):
        near = x[..., : self.width] if self.width else x
        made = near * cos + self._partners(near) * sin
        made = torch.cat((made, x[..., self.width :]), -1) if self.width else made
        return made if out is None else out.copy_(made)

    def _partners(self, x):
        if self.pairs == "halves":
            first, second = x.chunk(2, -1)
            return torch.cat((-second, first), -1)
        return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)

    def partner(self, j: int, r: int) -> tuple[int, int]:
        """The entry that goes with entry j of r, and the sign it is taken with.

        >>> Rotate("halves").partner(0, 4), Rotate("interleaved").partner(3, 4)
        ((2, -1), (2, 1))
        """
        step = r // 2 if self.pairs == "halves" else 1
        first = j < step if self.pairs == "halves" else j % 2 == 0
        return (j + step, -1) if first else (j - step, 1)

    def cell(self, inputs, in_dims, out_dims, index):
        (symbol, tensor), (cos, cosines), (sin, sines) = inputs[:3]
        *row, j = index
        own = Source(symbol, tuple(index), _number(tensor, index))
        r = cosines.shape[-1]
        if j >= r:
            return [Term((own,), own.value)], own.value, write(own.value)
        p, sign = self.partner(j, r)
        other = Source(symbol, (*row, p), _number(tensor, (*row, p)))
        at = broadcast(index, cosines.shape)
        c, s = Source(cos, at, _number(cosines, at)), Source(sin, at, _number(sines, at))
        mine, turned = own.value * c.value, sign * other.value * s.value
        shown = f"{as_factor(own.value)}·{as_factor(c.value)} + "
        shown += f"{as_factor(sign * other.value)}·{as_factor(s.value)}"
        return [Term((own, c), mine), Term((other, s), turned)], mine + turned, shown

    def latex(self, reads, sizes):
        x, cos, sin = map(tex, reads)
        return rf"{x} \odot {cos} + \mathrm{{partners}}({x}) \odot {sin}"

    def code(self, symbol, reads, dims, tensor):
        x, cos, sin = reads
        near, half = (
            (f"{x}[..., :{self.width}]", self.width // 2) if self.width else (x, "d_k // 2")
        )
        pairs = f"torch.stack((-{near}[..., 1::2], {near}[..., ::2]), -1).flatten(-2)"
        if self.pairs == "halves":
            first, second = f"{near}[..., :{half}]", f"{near}[..., {half}:]"
            pairs = f"torch.cat((-{second}, {first}), -1)"
        lines = [f"partners = {pairs}", f"{symbol} = {near} * {cos} + partners * {sin}"]
        if self.width:
            lines.append(f"{symbol} = torch.cat(({symbol}, {x}[..., {self.width}:]), -1)")
        return "\n".join(lines)

    def flops(self, sizes, in_dims, out_dims):
        turned = self.width or sizes[out_dims.split()[-1]]
        rows = volume(out_dims, sizes) // sizes[out_dims.split()[-1]]
        return 3 * rows * turned  # two products and a sum

    def describe(self, in_dims, out_dims, sizes):
        width = self.width or sizes[out_dims.split()[-1]]
        return {"kind": self.kind, "pairs": self.pairs, "width": width}

    def equation(self, reads):
        x, cos, sin = reads
        return [
            {"symbol": x}, {"operator": "↻"}, {"symbol": cos}, {"operator": ","}, {"symbol": sin}
        ]  # fmt: skip


@dataclass(frozen=True)
class Softmax(Op):
    """exp(x) / Σ exp(x) over the last axis, in `dtype` if one is named, and back.

    `guard="blind"` gives a row of only −∞ the weights 0, whether its scores were hidden or grew
    too large; `guard="infinite"` lets entries that grew to +∞ share a row evenly, which is the
    limit of softmax there. Plain softmax would give NaN in both cases. With a guard, a conversion
    to a narrower `dtype` stops at its largest number. `settle` picks the guard that is needed.
    """

    kind: ClassVar[str] = "softmax"
    rowwise: ClassVar[bool] = True
    dtype: str = ""
    guard: str = ""

    def failed(self, result) -> bool:
        """Whether another guard may be needed: either trouble makes a row NaN, first column too."""
        return self.guard != "infinite" and bool(result[..., 0].isnan().any())

    def settle(self, x, *, out=None):
        result = self.compute(x, out=out)
        if not self.failed(result):
            return self, result
        top = self._converted(x).amax(dim=-1)
        guard = "blind" if bool((top == -math.inf).any()) or self.dtype else self.guard
        guard = "infinite" if bool((top == math.inf).any()) else guard
        op = replace(self, guard=guard)
        return (self, result) if op == self else op.settle(x, out=out)

    def compute(self, x, *, out=None):
        kept, x = x.dtype, self._ready(x)
        if self.guard:
            blind = (x == -math.inf).all(-1, keepdim=True)
            result = x.masked_fill(blind, 0.0).softmax(-1).masked_fill(blind, 0.0)
        else:
            result = torch.softmax(x, -1, out=out if x.dtype == kept else None)
        result = result.to(kept)
        return result if out is None or result is out else out.copy_(result)

    def _converted(self, x):
        """The scores in the type softmax works in."""
        if not self.dtype:
            return x
        dtype = getattr(torch, self.dtype)
        most = torch.finfo(dtype).max
        if self.guard and most < torch.finfo(x.dtype).max:
            x = x.clamp(-most, most).where(x.isfinite(), x)
        return x.to(dtype)

    def _ready(self, x):
        """The converted scores; in a row that reaches +∞ all else is left out."""
        x = self._converted(x)
        if self.guard != "infinite":
            return x
        infinite = x == math.inf
        even = torch.where(infinite, 0.0, -math.inf).to(x.dtype)
        return torch.where(infinite.any(-1, keepdim=True), even, x)

    def cell(self, inputs, in_dims, out_dims, index):
        symbol, tensor = inputs[0]
        given = tensor[tuple(index[:-1])]
        row, values = self._ready(given).tolist(), given.tolist()
        top = max(row)
        if top == -math.inf and self.guard:
            return [], 0.0, "0"
        terms = [
            Term((Source(symbol, (*index[:-1], j), value),), math.exp(x - top))
            for j, (x, value) in enumerate(zip(row, values, strict=True))
        ]
        own = index[-1]
        total = terms[own].value / math.fsum(t.value for t in terms)
        return terms, total, _shares(row, own)

    def latex(self, reads, sizes):
        return rf"\mathrm{{softmax}}({tex(reads[0])})"

    def code(self, symbol, reads, dims, tensor):
        lines, x = [], reads[0]
        if self.dtype:
            lines.append(f"converted = {self._clamped(x, tensor.dtype)}.to(torch.{self.dtype})")
            x = "converted"
        if self.guard == "infinite":
            lines.append(f"even = torch.where({x} == torch.inf, 0.0, -torch.inf).to({x}.dtype)")
            reached = f"({x} == torch.inf).any(-1, keepdim=True)"
            lines.append(f"reached = torch.where({reached}, even, {x})")
            x = "reached"
        if self.guard:
            lines.append(f"blind = ({x} == -torch.inf).all(-1, keepdim=True)")
            made = f"{x}.masked_fill(blind, 0.0).softmax(-1).masked_fill(blind, 0.0)"
        else:
            made = f"{x}.softmax(-1)"
        back = f".to({reads[0]}.dtype)" if self.dtype else ""
        return "\n".join([*lines, f"{symbol} = {made}{back}"])

    def _clamped(self, x: str, dtype) -> str:
        most = torch.finfo(getattr(torch, self.dtype)).max
        if not self.guard or most >= torch.finfo(dtype).max:
            return x
        return f"{x}.clamp({-most!r}, {most!r}).where({x}.isfinite(), {x})"

    def flops(self, sizes, in_dims, out_dims):
        return 5 * volume(out_dims, sizes)  # largest, subtract, exp, add, divide

    def describe(self, in_dims, out_dims, sizes):
        return {"kind": self.kind, "axis": -1}

    def equation(self, reads):
        return [{"operator": "softmax"}, {"symbol": reads[0]}]


def _shares(row, own, most: int = 6) -> str:
    written = [f"e^{as_factor(x)}" if x < 0 else f"e^{write(x)}" for x in row]
    shown = written
    if len(written) > most:
        shown = [*written[:3], f"… ({len(written) - 4})", written[-1]]
    return f"{written[own]} / ({' + '.join(shown)})"


_KINDS = {
    "given": Given,
    "contract": Contract,
    "compare": Compare,
    "split": Split,
    "swap": Swap,
    "merge": Merge,
    "repeat": Repeat,
    "concat": Concat,
    "scale": Scale,
    "softcap": Softcap,
    "bias": Bias,
    "mask": Mask,
    "rms": Rms,
    "rotate": Rotate,
    "softmax": Softmax,
}


_PLAIN = {"float": (float, int), "int": int, "bool": bool, "str": str}


def load(saved: dict) -> Op:
    """Make an op again from what `save` wrote. Raises ValueError if it is none of ours.

    >>> load(Scale(0.5, root=4).save()) == Scale(0.5, root=4)
    True
    """
    saved = dict(saved)
    op = _KINDS[saved.pop("kind")](**saved)
    values = [(f.type, getattr(op, f.name)) for f in fields(op)]
    plain = all(isinstance(value, _PLAIN[kind]) for kind, value in values)
    known = all(math.isfinite(value) for kind, value in values if kind != "str" and plain)
    if isinstance(op, Softcap):
        known = known and op.cap > 0
    if isinstance(op, Rms):
        known = known and op.eps >= 0
    if isinstance(op, Rotate):
        known = known and op.pairs in PAIRS and op.width >= 0 and op.width % 2 == 0
    if isinstance(op, Softmax):
        known = op.dtype in ("", *DTYPES) and op.guard in ("", "blind", "infinite")
    if not (plain and known):
        raise ValueError(f"not a known operation: {saved}")
    return op
