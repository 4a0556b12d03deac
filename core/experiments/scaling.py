"""Why √d_k: sampled dot products, their softmax and its gradient, beside what theory predicts.

>>> found = sampled(Pairs(d_k=64))
>>> round(found.raw.variance), found.raw.predicted.variance
(64, 64.0)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import torch

from core.attention import attend, device, self_attention
from core.errors import require
from core.experiments.softmax import row_jacobians

WIDTHS = tuple(2**n for n in range(11))  # d_k from 1 to 1024
WIDEST = WIDTHS[-1]
COUNTS = (100, 1_000, 10_000, 100_000, 1_000_000)
CHUNK = 1 << 22  # entries of q drawn at once: 16 MiB
BINS = 80
REACH = 5  # standard deviations that a histogram shows on each side
SURE = 4  # standard errors that a measured variance may lie off and still agree
LONGEST, MOST_ROWS = 128, 64  # of the rows of scores

# Each with mean 0, variance 1; the excess of the fourth moment over a normal's 3; its PyTorch.
EXCESS = {"normal": 0.0, "uniform": -1.2, "rademacher": -2.0, "laplace": 3.0}
CODE = {
    "normal": "torch.randn(*shape, generator=g, device=g.device)",
    "uniform": "(torch.rand(*shape, generator=g, device=g.device) * 2 - 1) * 3**0.5",
    "rademacher": "torch.randint(0, 2, shape, generator=g, device=g.device) * 2.0 - 1",
    "laplace": "torch.empty(2, *shape, device=g.device).exponential_(generator=g).diff(dim=0)[0]"
    " / 2**0.5",
}


@dataclass(frozen=True)
class Moments:
    """Mean and variance."""

    mean: float
    variance: float

    @property
    def deviation(self) -> float:
        return math.sqrt(self.variance)

    def divided(self, by: float) -> Moments:
        return Moments(self.mean / by, self.variance / by**2)


@dataclass(frozen=True)
class Entries:
    """How the entries of q and k are drawn. The usual claim assumes the defaults.

    `variance`, `mean`: of every entry. `within`: correlation of two entries of the same vector,
    0…1. `across`: correlation of entry i of q with entry i of k, −1…1.
    """

    distribution: str = "normal"
    variance: float = 1.0
    mean: float = 0.0
    within: float = 0.0
    across: float = 0.0

    def __post_init__(self):
        known = ", ".join(EXCESS)
        ok = self.distribution in EXCESS
        require(ok, "unknown-choice", name="distribution", got=self.distribution, known=known)
        bounds = {"variance": (0, 1e3), "mean": (-1e2, 1e2), "within": (0, 1), "across": (-1, 1)}
        for name, (least, most) in bounds.items():
            got = getattr(self, name)
            require(math.isfinite(got), "not-a-number", name=name, got=got)
            require(got >= least, "size-least", name=name, got=got, least=least)
            require(got <= most, "size-most", name=name, got=got, most=most)

    @property
    def as_assumed(self) -> bool:
        """Independent entries with mean 0 and variance 1, whatever their distribution."""
        return self == Entries(self.distribution)

    def moments(self, d_k: int) -> Moments:
        """Mean and variance of q·k, exactly, for entries drawn by `draw`.

        With independent entries of mean 0 and variance 1 they are 0 and d_k.

        >>> Entries().moments(64), Entries(variance=4.0).moments(64).variance
        (Moments(mean=0.0, variance=64.0), 1024.0)
        """
        n, var, rho, tau = d_k, self.variance, self.within, self.across
        square = n + n * (n - 1) * rho**2  # Σ_ij of squared correlations within a vector
        plain = n + n * (n - 1) * rho  # Σ_ij of the correlations themselves
        tails = EXCESS[self.distribution] * tau**2 * (n * n * rho**2 + n * (1 - rho) ** 2)
        spread = var**2 * ((1 + tau**2) * square + tails)
        spread += self.mean**2 * var * (2 + 2 * tau) * plain
        return Moments(n * (self.mean**2 + tau * var), spread)

    def draw(self, q_shape, k_shape, g: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """q and k, float32, on the generator's device. Last axis d_k; other axes broadcast."""
        a, b = self._vectors(q_shape, g), self._vectors(k_shape, g)
        if self.across:
            b = self.across * a + (1 - self.across**2) ** 0.5 * b
        deviation = self.variance**0.5
        return self.mean + deviation * a, self.mean + deviation * b

    def _vectors(self, shape, g):
        own = standard(self.distribution, shape, g)
        if not self.within:
            return own
        common = standard(self.distribution, (*shape[:-1], 1), g)
        return self.within**0.5 * common + (1 - self.within) ** 0.5 * own


def standard(distribution: str, shape, g: torch.Generator) -> torch.Tensor:
    """Independent entries with mean 0 and variance 1 (CODE says the same)."""
    if distribution == "normal":
        return torch.randn(*shape, generator=g, device=g.device)
    if distribution == "uniform":
        return (torch.rand(*shape, generator=g, device=g.device) * 2 - 1) * 3**0.5
    if distribution == "rademacher":
        return torch.randint(0, 2, shape, generator=g, device=g.device) * 2.0 - 1
    waits = torch.empty(2, *shape, device=g.device).exponential_(generator=g)
    return waits.diff(dim=0)[0] / 2**0.5


def _generator(seed: int) -> torch.Generator:
    return torch.Generator(device()).manual_seed(seed)


# --- dot products -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Pairs:
    """`count` pairs of a query and a key, each of width `d_k`."""

    entries: Entries = Entries()
    d_k: int = 64
    count: int = 10_000
    seed: int = 0

    def __post_init__(self):
        require(self.d_k >= 1, "size-least", name="d_k", got=self.d_k, least=1)
        require(self.d_k <= WIDEST, "size-most", name="d_k", got=self.d_k, most=WIDEST)
        most = COUNTS[-1]
        require(self.count >= 2, "size-least", name="count", got=self.count, least=2)
        require(self.count <= most, "size-most", name="count", got=self.count, most=most)

    @property
    def chunks(self) -> tuple[int, ...]:
        """How many pairs are drawn at a time."""
        rows = max(1, CHUNK // self.d_k)
        whole, rest = divmod(self.count, rows)
        return (rows,) * whole + (rest,) * bool(rest)


@dataclass(frozen=True)
class Spread:
    """What one kind of score looks like over a sample.

    `predicted`: exact, for the entries as they are drawn; `claimed`: for entries as assumed.
    `margin`: how far the measured variance may lie from a true one. `beyond`: the share of scores
    farther than 3 standard deviations from their mean. `edges`, `density`: the histogram.
    """

    measured: Moments
    predicted: Moments
    claimed: Moments
    margin: float
    beyond: float
    edges: tuple[float, ...]
    density: tuple[float, ...]

    @property
    def variance(self) -> float:
        return self.measured.variance

    def agrees(self, variance: float) -> bool:
        """Whether the measured variance is `variance`, as far as this sample can tell."""
        return abs(self.variance - variance) <= self.margin


@dataclass(frozen=True)
class Sample:
    """q·k as it is and divided by √d_k, over the pairs drawn so far."""

    pairs: Pairs
    done: int
    raw: Spread
    scaled: Spread

    @property
    def becomes_one(self) -> bool:
        """The claim: divided by √d_k, the variance is 1."""
        return self.scaled.agrees(1.0)


def sample(pairs: Pairs) -> Iterator[Sample]:
    """Draw and compare, a chunk at a time; each time, what all chunks so far say."""
    g, scores, scaled = _generator(pairs.seed), [], []
    for rows in pairs.chunks:
        q, k = pairs.entries.draw((rows, 1, 1, pairs.d_k), (rows, 1, 1, pairs.d_k), g)
        trace = attend(q, k, k[..., :1])
        scores.append(trace["scores"].flatten().cpu())
        scaled.append(trace["scaled"].flatten().cpu())
        yield _summary(pairs, torch.cat(scores).double(), torch.cat(scaled).double())


@lru_cache(maxsize=32)
def sampled(pairs: Pairs) -> Sample:
    """The whole sample at once."""
    *_others, last = sample(pairs)
    return last


def _summary(pairs: Pairs, scores: torch.Tensor, scaled: torch.Tensor) -> Sample:
    root, exact = pairs.d_k**0.5, pairs.entries.moments(pairs.d_k)
    claimed = Moments(0.0, float(pairs.d_k))
    step = _lattice(pairs.entries)
    return Sample(
        pairs,
        len(scores),
        _spread(scores, exact, claimed, step),
        _spread(scaled, exact.divided(root), claimed.divided(root), step / root),
    )


def _lattice(entries: Entries) -> float:
    """The distance of neighbouring values of q·k where it takes only some, else 0."""
    bare = entries == Entries(entries.distribution, entries.variance)
    return 2 * entries.variance if bare and entries.distribution == "rademacher" else 0.0


def _spread(x: torch.Tensor, predicted: Moments, claimed: Moments, step: float) -> Spread:
    measured = Moments(float(x.mean()), float(x.var()))
    off = x - x.mean()
    fourth, n = float((off**4).mean()), len(x)
    error = math.sqrt(max(fourth - measured.variance**2, 0.0) / n)
    # Values that all have one size have no error to speak of, but their mean still wavers.
    margin = max(SURE * error, 10 * measured.variance / n)
    beyond = float((off.abs() > 3 * measured.deviation).double().mean())
    edges = _edges(predicted, x, step)
    counts = torch.histogram(x, edges).hist
    density = counts / n / edges.diff()
    return Spread(
        measured, predicted, claimed, margin, beyond, tuple(edges.tolist()), tuple(density.tolist())
    )


def _edges(predicted: Moments, x: torch.Tensor, step: float) -> torch.Tensor:
    """Bins REACH deviations to each side; on a lattice each holds equally many of its points."""
    half = REACH * (predicted.deviation or 1.0)
    if not step:
        ends = predicted.mean - half, predicted.mean + half
        return torch.linspace(*ends, BINS + 1, dtype=torch.float64)
    width = step * max(1, round(2 * half / BINS / step))
    first = float(x[0]) - step / 2  # an edge halfway between two lattice points
    count = math.ceil(half / width) + 1
    middle = first - width * math.floor(first / width)
    return middle + width * torch.arange(-count, count + 1, dtype=torch.float64)


def normal_density(moments: Moments, points: int = 161) -> tuple[tuple[float, ...], ...]:
    """The bell curve with these moments, REACH deviations to each side: where, and how high."""
    deviation = moments.deviation or 1e-9
    z = torch.linspace(-REACH, REACH, points, dtype=torch.float64)
    height = (-z * z / 2).exp() / (deviation * math.sqrt(2 * math.pi))
    return tuple((moments.mean + deviation * z).tolist()), tuple(height.tolist())


# --- rows of scores, their softmax, its gradient ----------------------------------------------


@dataclass(frozen=True)
class Rows:
    """`rows` queries, each with `T` keys of its own: as many rows of scores."""

    entries: Entries = Entries()
    T: int = 32
    rows: int = 32
    seed: int = 0

    def __post_init__(self):
        for name, got, most in (("T", self.T, LONGEST), ("rows", self.rows, MOST_ROWS)):
            require(got >= 2, "size-least", name=name, got=got, least=2)
            require(got <= most, "size-most", name=name, got=got, most=most)


@dataclass(frozen=True)
class Typical:
    """One quantity over many rows: its mean and its median."""

    mean: float
    median: float


@dataclass(frozen=True)
class Point:
    """The softmax of rows of q·k / divisor at one width.

    `entropy` in nats; `largest`: the largest weight of a row; `jacobian`: Frobenius norm of
    ∂ weights / ∂ scores after the division; `to_query`: that of ∂ weights / ∂ q.
    """

    d_k: int
    divisor: float
    entropy: Typical
    largest: Typical
    jacobian: Typical
    to_query: Typical


@lru_cache(maxsize=len(WIDTHS) + 1)
def _drawn(rows: Rows, d_k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """q (rows, 1, 1, d_k) and k (rows, 1, T, d_k); kept for other divisors: all widths of the
    default rows take 8 MB, of the most rows 67 MB."""
    shapes = (rows.rows, 1, 1, d_k), (rows.rows, 1, rows.T, d_k)
    return rows.entries.draw(*shapes, _generator(rows.seed))


def trace(rows: Rows, d_k: int, divisor: float):
    """The engine's trace of softmax(q·k / divisor), all rows as one batch."""
    require(divisor > 0, "size-least", name="τ", got=divisor, least=0)
    q, k = _drawn(rows, d_k)
    return attend(q, k, k[..., :1], scale=1 / divisor)


@lru_cache(maxsize=512)
def point(rows: Rows, d_k: int, divisor: float) -> Point:
    """Measure the softmax of rows at one width.

    >>> point(Rows(), 1024, 1.0).largest.mean > 0.9  # unscaled: nearly one-hot
    True
    """
    found = trace(rows, d_k, divisor)
    weights = found["weights"][:, 0, 0].double().cpu()
    jacobians = row_jacobians(found["scaled"][:, 0, 0].double().cpu())
    # The chain rule: a score is q·k / divisor, so its derivative by q is k / divisor.
    to_query = jacobians @ found["K"][:, 0].double().cpu() / divisor
    return Point(
        d_k,
        divisor,
        _typical(-torch.special.xlogy(weights, weights).sum(-1)),
        _typical(weights.amax(-1)),
        _typical(torch.linalg.matrix_norm(jacobians)),
        _typical(torch.linalg.matrix_norm(to_query)),
    )


def _typical(x: torch.Tensor) -> Typical:
    return Typical(float(x.mean()), float(x.quantile(0.5)))


def sweep(rows: Rows, own: float) -> Iterator[tuple[Point, Point, Point]]:
    """For each of WIDTHS: undivided, divided by √d_k, and divided by one's own number."""
    for d_k in WIDTHS:
        yield tuple(point(rows, d_k, divisor) for divisor in (1.0, d_k**0.5, own))


@lru_cache(maxsize=64)
def one_row(rows: Rows, d_k: int, own: float) -> tuple[tuple[float, ...], ...]:
    """Weights of the first row, largest first: undivided, by √d_k, by one's own number."""
    return tuple(
        tuple(trace(rows, d_k, divisor)["weights"][0, 0, 0].sort(descending=True)[0].tolist())
        for divisor in (1.0, d_k**0.5, own)
    )


# --- T5 ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Unscaled:
    """Variance of undivided scores, W_Q drawn with variance 1/H as usual, or 1/(H·d_k) as in T5."""

    usual: float
    t5: float


@lru_cache(maxsize=32)
def unscaled(d_k: int, seed: int = 0, H: int = 512, S: int = 256) -> Unscaled:
    """Scores straight from X, by the engine with scale 1; X normal, W_K with variance 1/H.

    >>> found = unscaled(64)
    >>> round(found.usual, -1), round(found.t5)
    (60.0, 1)
    """
    g = _generator(seed)
    X, W_Q, W_K = (
        torch.randn(*shape, generator=g, device=g.device) for shape in ((S, H), (H, d_k), (H, d_k))
    )
    W_K = W_K / H**0.5
    usual, t5 = (
        float(self_attention(X, W_Q / by**0.5, W_K, W_K, scale=1.0)["scores"].var())
        for by in (H, H * d_k)
    )
    return Unscaled(usual, t5)


# --- the code ---------------------------------------------------------------------------------


def _draw_lines(entries: Entries) -> list[str]:
    """A `draw(q_shape, k_shape)` that draws as `Entries.draw` does, without what is not needed."""
    lines = ["def standard(*shape):", f"    return {CODE[entries.distribution]}", ""]
    vector = "standard"
    if entries.within:
        vector, rho = "vectors", entries.within
        lines += [
            "def vectors(*shape):",
            "    own, common = standard(*shape), standard(*shape[:-1], 1)",
            f"    return {rho!r}**0.5 * common + {1 - rho!r}**0.5 * own",
            "",
        ]
    lines += ["def draw(q_shape, k_shape):", f"    q, k = {vector}(*q_shape), {vector}(*k_shape)"]
    if entries.across:
        tau = entries.across
        lines.append(f"    k = {tau!r} * q + (1 - {tau**2!r})**0.5 * k")
    if entries.variance != 1:
        lines.append(f"    q, k = {entries.variance!r}**0.5 * q, {entries.variance!r}**0.5 * k")
    if entries.mean:
        lines.append(f"    q, k = {entries.mean!r} + q, {entries.mean!r} + k")
    return [*lines, "    return q, k", ""]


def snippet(pairs: Pairs) -> str:
    """The PyTorch that samples and measures as `sampled` does; `dots` are its scores."""
    rows, *others = pairs.chunks
    chunks = f"{[rows]}" if not others else f"{[rows]} * {len(pairs.chunks) - 1} + {others[-1:]}"
    return "\n".join(
        (
            "import torch",
            "",
            f'g = torch.Generator("{device().type}").manual_seed({pairs.seed})',
            f"d_k = {pairs.d_k}",
            "",
            *_draw_lines(pairs.entries),
            "dots = []",
            f"for rows in {chunks}:",
            "    q, k = draw((rows, d_k), (rows, d_k))",
            "    dots.append((q * k).sum(-1))",
            "dots = torch.cat(dots)",
            "for x in (dots, dots / d_k**0.5):",
            "    print(x.mean(), x.var(), 3 * x.std())",
            "",
        )
    )


def sweep_snippet(rows: Rows, own: float) -> str:
    """The PyTorch that measures as `sweep` does; `found` are its mean values."""
    return "\n".join(
        (
            "import torch",
            "",
            f"R, T = {rows.rows}, {rows.T}",
            "",
            *_draw_lines(rows.entries),
            "found = {}",
            f"for d_k in {list(WIDTHS)}:",
            f'    g = torch.Generator("{device().type}").manual_seed({rows.seed})',
            "    q, k = draw((R, 1, d_k), (R, T, d_k))",
            f"    for divisor in (1.0, d_k**0.5, {own!r}):",
            "        x = ((q @ k.mT)[:, 0] / divisor).double()",
            "        p = x.softmax(-1)",
            "        entropy = -torch.special.xlogy(p, p).sum(-1)",
            "        copies = x[:, None].repeat(1, T, 1).requires_grad_()  # copy i: output i",
            "        own = copies.softmax(-1).diagonal(dim1=-2, dim2=-1)",
            "        J, = torch.autograd.grad(own.sum(), copies)  # (R, T, T)",
            "        norm = torch.linalg.matrix_norm(J)",
            "        to_query = torch.linalg.matrix_norm(J @ k.double() / divisor)",
            "        measured = (entropy, p.amax(-1), norm, to_query)",
            "        found[d_k, divisor] = [x.mean().item() for x in measured]",
            "        print(d_k, divisor, found[d_k, divisor])",
            "",
        )
    )


def unscaled_snippet(d_k: int, seed: int = 0, H: int = 512, S: int = 256) -> str:
    """The PyTorch of `unscaled`; `found` are its two variances."""
    return "\n".join(
        (
            "import torch",
            "",
            f'g = torch.Generator("{device().type}").manual_seed({seed})',
            f"S, H, d_k = {S}, {H}, {d_k}",
            "X, W_Q, W_K = (torch.randn(*shape, generator=g, device=g.device)",
            "               for shape in ((S, H), (H, d_k), (H, d_k)))",
            "K = X @ (W_K / H**0.5)",
            "found = [(X @ (W_Q / by**0.5) @ K.T).var().item() for by in (H, H * d_k)]",
            "print(found)  # the usual initialisation, T5's",
            "",
        )
    )
