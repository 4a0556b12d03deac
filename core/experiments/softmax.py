"""Softmax taken apart: every intermediate, its Jacobian, and where a number type gives out.

>>> round(taken_apart((2.0, 1.0, 0.0)).share[0], 4)
0.6652
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch

from core.attention import attend
from core.errors import InputError, require
from core.ops import Softmax
from core.trace import Trace

DTYPES = ("float16", "bfloat16", "float32", "float64")
FEWEST, MOST = 2, 12  # scores of a row
LARGEST = 100_000.0  # of a score, by magnitude
COOLEST, WARMEST = 0.05, 20.0  # temperatures
STEEPEST = 0.25  # no derivative of softmax is larger

Row = tuple[float, ...]
EXAMPLES: dict[str, Row] = {
    "start": (2.0, 1.0, 0.1, -1.0),
    "even": (1.0, 1.0, 1.0, 1.0),
    "tie": (5.0, 5.0, 0.0, 0.0),
    "certain": (10.0, 0.0, 0.0, 0.0),
    "twelve": (12.0, 11.0, 10.0),
    "hundred": (100.0, 99.0, 98.0),
    "thousand": (1000.0, 999.0, 998.0),
    "low": (-20.0, -21.0, -22.0),
}
_BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def read_scores(text: str) -> Row:
    """Scores from a text: numbers with commas, semicolons or spaces between. Raises InputError.

    >>> read_scores("2, 1 0.5")
    (2.0, 1.0, 0.5)
    """
    for separator in ",，;；、":
        text = text.replace(separator, " ")
    return checked(tuple(_number(part) for part in text.replace("−", "-").split()))


def _number(part: str) -> float:
    try:
        return float(part)
    except ValueError:
        raise InputError("scores-text", got=part[:40]) from None


def checked(scores: Sequence[float]) -> Row:
    """The scores, if there are neither too few nor too many and none is too large."""
    require(FEWEST <= len(scores) <= MOST, "scores-count", got=len(scores), least=FEWEST, most=MOST)
    for name, x in zip(subscripts(len(scores)), scores, strict=True):
        require(math.isfinite(x), "not-a-number", name=name, got=x)
        require(abs(x) <= LARGEST, "score-range", name=name, got=x, most=f"{LARGEST:,.0f}")
    return tuple(map(float, scores))


def write_scores(scores: Row) -> str:
    """The text that `read_scores` reads back exactly.

    >>> write_scores((2.0, 0.5))
    '2, 0.5'
    """
    return ", ".join(repr(x).removesuffix(".0") for x in scores)


def subscripts(count: int, letter: str = "x") -> list[str]:
    """Names of a row's members, counted from 1.

    >>> subscripts(2)
    ['x₁', 'x₂']
    """
    low = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
    return [letter + str(i + 1).translate(low) for i in range(count)]


# --- taken apart ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Parts:
    """Every intermediate of one softmax in one number type, as Python floats.

    `scores` as the type holds them, constant added; `divided` by the temperature; `naive`,
    `naive_total`, `naive_share` from exp(x) itself; `shifted`, `exp`, `total`, `share` with the
    largest score taken off first, as torch does it.
    """

    dtype: str
    scores: Row
    divided: Row
    naive: Row
    naive_total: float
    naive_share: Row
    largest: float
    shifted: Row
    exp: Row
    total: float
    share: Row

    @property
    def naive_breaks(self) -> bool:
        """Whether the naive sum overflowed, or every exp vanished: then no share is right."""
        return not 0 < self.naive_total < math.inf


def taken_apart(scores: Row, temperature=1.0, constant=0.0, dtype="float64") -> Parts:
    """One softmax, intermediate by intermediate.

    >>> taken_apart((12.0, 0.0), dtype="float16").naive
    (inf, 1.0)
    """
    x = torch.tensor(scores, dtype=getattr(torch, dtype)) + constant
    divided = x / temperature
    naive, largest = divided.exp(), divided.max()
    shifted = divided - largest
    exp = shifted.exp()
    return Parts(
        dtype, _row(x), _row(divided), _row(naive), float(naive.sum()), _row(naive / naive.sum()),
        float(largest), _row(shifted), _row(exp), float(exp.sum()), _row(exp / exp.sum()),
    )  # fmt: skip


def _row(x: torch.Tensor) -> Row:
    return tuple(x.tolist())


def engine(scores: Row, temperature: float = 1.0, constant: float = 0.0) -> Trace:
    """The same softmax as attention: the scores as one query, the identity as keys and values.

    Its `scaled` are the scores over the temperature, its `weights` and its `output` the shares.

    >>> engine((2.0, 1.0, 0.0)).explain("weights", (0, 0)).text
    'e^2 / (e^2 + e^1 + e^0) = 0.6652'
    """
    x = torch.tensor([scores], dtype=torch.float64) + constant
    identity = torch.eye(len(scores), dtype=torch.float64)
    return attend(x, identity, identity, scale=1 / temperature)


@dataclass(frozen=True)
class Moved:
    """Shares with and without a constant added to every score, and how far they lie apart."""

    before: Row
    after: Row
    difference: float


def moved(scores: Row, constant: float, temperature: float = 1.0) -> Moved:
    """Add a constant to every score: what changes in the shares (rounding, nothing else).

    >>> moved((2.0, 1.0, 0.0), 10.0).difference < 1e-12
    True
    """
    before, after = (engine(scores, temperature, c)["weights"][0] for c in (0.0, constant))
    apart = float((before - after).abs().max())
    return Moved(_row(before), _row(after), apart)


# --- derivatives ------------------------------------------------------------------------------


def row_jacobians(x: torch.Tensor) -> torch.Tensor:
    """∂ softmax(row)_i / ∂ row_j of each row by autograd: (R, T) gives (R, T, T).

    The row is laid out T times and copy i asked for its output i, so one backward pass is enough.

    >>> row_jacobians(torch.zeros(1, 2))
    tensor([[[ 0.2500, -0.2500],
             [-0.2500,  0.2500]]])
    """
    with torch.enable_grad():
        copies = x.detach()[:, None].repeat(1, x.shape[-1], 1).requires_grad_()
        own = Softmax().compute(copies).diagonal(dim1=-2, dim2=-1)
        return torch.autograd.grad(own.sum(), copies)[0]


@dataclass(frozen=True)
class Jacobian:
    """p_i(δ_ij − p_j) by its formula and by autograd, (n, n) each, rows i, and their distance."""

    formula: torch.Tensor
    autograd: torch.Tensor

    @property
    def difference(self) -> torch.Tensor:
        return self.formula - self.autograd

    @property
    def apart(self) -> float:
        return float(self.difference.abs().max())

    @property
    def steepest(self) -> float:
        """The largest derivative: never more than 1/4."""
        return float(self.autograd.abs().max())

    @property
    def norm(self) -> float:
        """Frobenius norm."""
        return float(self.autograd.norm())


@lru_cache(maxsize=64)
def jacobian(scores: Row, temperature: float = 1.0) -> Jacobian:
    """The derivative of each share by each x_j / τ, which is what softmax is given.

    By x_j itself it is 1/τ times as much.

    >>> found = jacobian((2.0, 1.0, 0.0))
    >>> found.apart < 1e-15, round(found.steepest, 4)
    (True, 0.2227)
    """
    trace = engine(scores, temperature)
    p = trace["weights"][0]
    return Jacobian(torch.diag(p) - torch.outer(p, p), row_jacobians(trace["scaled"])[0])


@dataclass(frozen=True)
class Slope:
    """One score moved over a range: its share and the derivative of its share by itself."""

    moved: Row
    share: Row
    derivative: Row


@lru_cache(maxsize=64)
def slope(divided: Row, which: int, points: int = 121) -> Slope:
    """Let input `which` of softmax run from 8 below to 8 above where its share is one half."""
    others = torch.tensor([x for i, x in enumerate(divided) if i != which], dtype=torch.float64)
    across = torch.linspace(-8, 8, points, dtype=torch.float64) + others.logsumexp(0)
    rows = torch.tensor(divided, dtype=torch.float64).repeat(points, 1)
    rows[:, which] = across
    share = Softmax().compute(rows.requires_grad_())[:, which]
    derivative = torch.autograd.grad(share.sum(), rows)[0][:, which]
    return Slope(_row(across), _row(share.detach()), _row(derivative))


@lru_cache(maxsize=64)
def temperatures(scores: Row, points: int = 61) -> tuple[Row, tuple[Row, ...]]:
    """Shares against temperature: the temperatures, and for each score its shares along them.

    >>> along, shares = temperatures((2.0, 1.0, 0.0))
    >>> round(along[0], 2), round(shares[0][0], 4), round(shares[0][-1], 4)
    (0.05, 1.0, 0.3501)
    """
    ends = math.log10(COOLEST), math.log10(WARMEST)
    along = torch.logspace(*ends, points, dtype=torch.float64)
    x = torch.tensor(scores, dtype=torch.float64)
    shares = Softmax().compute(x[None] / along[:, None])
    return _row(along), tuple(map(_row, shares.T))


# --- number types -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Limit:
    """Where exp of one number type gives out, found by trying.

    `fits`: the largest score whose exp is finite; `breaks`: the next number of the type;
    `vanishes`: the first score below 0 whose exp is 0; `largest`: the largest finite number.
    """

    dtype: str
    largest: float
    fits: float
    breaks: float
    vanishes: float


@lru_cache(maxsize=len(DTYPES))
def limit(dtype: str) -> Limit:
    """Try exp in a number type until it overflows, and until it vanishes.

    >>> found = limit("float16")
    >>> found.fits, found.breaks, found.largest
    (11.0859375, 11.09375, 65504.0)
    """
    kind = getattr(torch, dtype)
    last = _last(kind, lambda x: bool(x.exp().isfinite()))
    lowest = _last(kind, lambda x: bool((-x).exp() > 0))
    largest = torch.finfo(kind).max
    values = (_number_at(bits, kind) for bits in (last, last + 1, lowest + 1))
    fits, breaks, vanishes = (float(value) for value in values)
    return Limit(dtype, largest, fits, breaks, -vanishes)


def _number_at(bits: int, kind: torch.dtype) -> torch.Tensor:
    """The number with this bit pattern; those of positive numbers are in the numbers' order."""
    return torch.tensor(bits, dtype=_BITS[kind.itemsize]).view(kind)


def _last(kind: torch.dtype, holds: Callable[[torch.Tensor], bool]) -> int:
    """The bit pattern of the largest finite number for which `holds`, by bisection."""
    low = 0
    high = int(torch.tensor(torch.finfo(kind).max, dtype=kind).view(_BITS[kind.itemsize]))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(_number_at(middle, kind)) else (low, middle - 1)
    return low


@dataclass(frozen=True)
class InType:
    """The reader's scores in one number type: the naive and the shifted way.

    `error`: how far the shifted shares lie from those in float64; NaN where they are not numbers,
    as when a score itself is too large for the type.
    """

    limit: Limit
    parts: Parts
    error: float


@lru_cache(maxsize=64)
def in_types(scores: Row, temperature: float = 1.0, constant: float = 0.0) -> tuple[InType, ...]:
    """The same scores in each number type.

    >>> [found.parts.naive_breaks for found in in_types((12.0, 0.0))]
    [True, False, False, False]
    """
    exact = taken_apart(scores, temperature, constant).share
    return tuple(_in_type(dtype, scores, temperature, constant, exact) for dtype in DTYPES)


def _in_type(dtype, scores, temperature, constant, exact) -> InType:
    parts = taken_apart(scores, temperature, constant, dtype)
    apart = [abs(a - b) for a, b in zip(parts.share, exact, strict=True)]
    error = math.nan if any(map(math.isnan, apart)) else max(apart)
    return InType(limit(dtype), parts, error)


# --- the code ---------------------------------------------------------------------------------


def snippet(scores: Row, temperature=1.0, constant=0.0, dtype="float64") -> str:
    """The PyTorch that computes what the page shows; `share`, `naive` and `J` are its results."""
    return "\n".join(
        (
            "import torch",
            "",
            f"x = torch.tensor({list(scores)}, dtype=torch.{dtype}) + {constant!r}",
            f"x = x / {temperature!r}  # temperature",
            "",
            "naive = x.exp() / x.exp().sum()",
            "e = (x - x.max()).exp()",
            "share = e / e.sum()",
            "print(naive, share, share - x.softmax(-1), sep='\\n')",
            "",
            "J = torch.autograd.functional.jacobian(lambda x: x.softmax(-1), x)",
            "formula = torch.diag(share) - torch.outer(share, share)",
            "print(J, (J - formula).abs().max(), sep='\\n')",
            "",
        )
    )
