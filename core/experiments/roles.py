"""Why three roles: x·x against one shared W and against W_Q ≠ W_K, and the spaces they open.

>>> config = setting(("the", "cat", "sat"))
>>> measure(scores(config, "direct")).asymmetry, measure(scores(config, "separate")).asymmetry > 0
(0.0, True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import torch

from core import inputs
from core.attention import attend, run
from core.config import AttentionConfig
from core.errors import require
from core.trace import Trace

H = 4  # width of a row: small, so that single weights can be turned
WAYS = ("direct", "shared", "equal", "separate")  # equal: shared, with keys of equal length
DRAWS = 2000  # of the weights, for what holds in general
LONGEST = 12  # tokens
TURNABLE = ("W_Q", "W_K", "W_V")
SAME = 1e-5  # share of the largest score below which two scores count as equal


whole = lru_cache(maxsize=256)(run)


def setting(tokens: tuple[str, ...], d: int = 2, seed: int = 0, edits=()) -> AttentionConfig:
    """A sentence in rows of width 4, projected to `d` = 2 or 3. Raises InputError."""
    require(len(tokens) >= 1, "text-empty", name="sentence")
    require(len(tokens) <= LONGEST, "size-most", name="tokens", got=len(tokens), most=LONGEST)
    require(d in (2, 3), "unknown-choice", name="d_k", got=d, known="2, 3")
    return AttentionConfig(
        S=len(tokens), H=H, d_k=d, d_v=d, tokens=(tokens,), seed=seed, edits=edits
    )  # fmt: skip


@lru_cache(maxsize=256)
def trace(config: AttentionConfig, way: str) -> Trace:
    """Attention of the sentence to itself, one of WAYS; "direct" takes X for Q, K and V."""
    entire = whole(config)
    if way == "separate":
        return entire
    if way == "direct":
        return attend(entire["X"], entire["X"], entire["X"])
    q = entire["Q"]
    return attend(q, unit(q) if way == "equal" else q, entire["V"])


def scores(config: AttentionConfig, way: str) -> torch.Tensor:
    """(S, S), not yet divided."""
    return trace(config, way)["scores"]


def unit(rows: torch.Tensor) -> torch.Tensor:
    """Rows of length 1."""
    return torch.nn.functional.normalize(rows, dim=-1)


# --- what is measured -------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """`asymmetry`: ‖S − Sᵀ‖ / ‖S‖, 0 for a symmetric matrix. `own`: rows whose largest score is
    at the own position (ties count), of `rows`."""

    asymmetry: float
    own: int
    rows: int


def measure(matrix: torch.Tensor) -> Measured:
    """Symmetry and self-preference of scores (S, S).

    >>> measure(torch.tensor([[1.0, 2.0], [2.0, 4.0]]))
    Measured(asymmetry=0.0, own=1, rows=2)
    """
    own = _own(matrix)
    return Measured(float(_asymmetry(matrix)), int(own.sum()), own.numel())


def _asymmetry(matrices: torch.Tensor) -> torch.Tensor:
    norm = torch.linalg.matrix_norm
    difference = norm(matrices - matrices.mT) / norm(matrices).clamp_min(1e-30)
    return difference.where(difference > SAME, 0.0)


def _own(matrices: torch.Tensor) -> torch.Tensor:
    largest = matrices.amax(-1)
    return matrices.diagonal(dim1=-2, dim2=-1) >= largest - SAME * matrices.abs().amax(-1)


@dataclass(frozen=True)
class Census:
    """Over many draws of the weights: root mean square asymmetry, mean share of rows that prefer
    themselves, and in how many of `draws` every row does."""

    asymmetry: float
    own: float
    every: int
    draws: int


@lru_cache(maxsize=64)
def census(config: AttentionConfig) -> dict[str, Census]:
    """The same sentence with 2000 draws of W_Q and W_K, for each of WAYS."""
    X = whole(config)["X"]
    W_Q, W_K = draw(config)
    q, k = X @ W_Q, X @ W_K
    asked = {"direct": (X, X), "shared": (q, q), "equal": (q, unit(q)), "separate": (q, k)}
    found = {}
    for way, (left, right) in asked.items():
        left, right = (rows.expand(DRAWS, 1, *rows.shape[-2:]) for rows in (left, right))
        matrices = attend(left, right, right)["scores"][:, 0]
        own = _own(matrices)
        squares = torch.linalg.matrix_norm(torch.stack([matrices - matrices.mT, matrices])) ** 2
        ratio = squares[0].mean() / squares[1].mean()
        found[way] = Census(
            float(ratio.sqrt()) if ratio > SAME**2 else 0.0,
            float(own.float().mean()), int(own.all(-1).sum()), DRAWS,
        )  # fmt: skip
    return found


def draw(config: AttentionConfig) -> tuple[torch.Tensor, torch.Tensor]:
    """W_Q and W_K, each (DRAWS, 1, H, d_k), entries of variance 1/H."""
    g = torch.Generator().manual_seed(config.seed)
    drawn = torch.randn(2, DRAWS, 1, config.H, config.d_k, generator=g) * config.H**-0.5
    return drawn[0], drawn[1]


def predicted_asymmetry(config: AttentionConfig) -> float:
    """What `census` should find for W_Q ≠ W_K, exact for independent weights of mean 0.

    Then S_ij has variance ‖x_i‖²‖x_j‖² and covariance (x_i·x_j)² with S_ji, up to one common
    factor. So the mean square of S − Sᵀ is 2·Σ(‖x_i‖²‖x_j‖² − (x_i·x_j)²).
    """
    X = whole(config)["X"].double()
    squares = (X * X).sum(-1)
    both = squares[:, None] * squares
    return float((2 * (both - (X @ X.T) ** 2).sum() / both.sum()).clamp_min(0).sqrt())


# --- the counterexample -----------------------------------------------------------------------


@dataclass(frozen=True)
class Duel:
    """What the first of two rows scores with itself and with the other; `equal`: the same with
    keys of length 1. `weights`: its shares."""

    own: float
    other: float
    equal_other: float
    weights: tuple[float, float]

    @property
    def beaten(self) -> bool:
        return self.other > self.own + SAME


@lru_cache(maxsize=256)
def duel(length: float, degrees: float) -> Duel:
    """x₁ = (1, 0) against x₂ of this length at this angle, W_Q = W_K = 1 (the identity).

    >>> duel(2.0, 0.0).other, duel(2.0, 0.0).beaten, duel(2.0, 0.0).equal_other
    (2.0, True, 1.0)
    """
    X = rows_of_duel(length, degrees)
    found, equal = attend(X, X, X), attend(X, unit(X), X)
    own, other = found["scores"][0].tolist()
    weights = tuple(found["weights"][0].tolist())
    return Duel(own, other, float(equal["scores"][0, 1]), weights)


def rows_of_duel(length: float, degrees: float) -> torch.Tensor:
    """Both rows, (2, 2)."""
    angle = math.radians(degrees)
    return torch.tensor([[1.0, 0.0], [length * math.cos(angle), length * math.sin(angle)]])


# --- the three spaces -------------------------------------------------------------------------


@dataclass(frozen=True)
class Key:
    """One key as seen from a query: lengths, angle in degrees, dot product, weight."""

    query_length: float
    length: float
    cosine: float
    degrees: float
    dot: float
    weight: float


def keys(config: AttentionConfig, query: int) -> list[Key]:
    """Every key as the query number `query` meets it; dot and weight are the engine's."""
    entire = whole(config)
    q, K = entire["Q"][query].double(), entire["K"].double()
    cosines = (unit(K) @ unit(q)).clamp(-1, 1)
    found = zip(
        K.norm(dim=-1).tolist(), cosines.tolist(), cosines.acos().rad2deg().tolist(),
        entire["scores"][query].tolist(), entire["weights"][query].tolist(), strict=True,
    )  # fmt: skip
    return [Key(float(q.norm()), *row) for row in found]


def turned(config: AttentionConfig, matrix: str, row: int, column: int, by: float):
    """The configuration with `by` added to one weight."""
    if not by:
        return config
    value = float(whole(config)[matrix][row, column]) + by
    return config.changed(edits=((matrix, (row, column), value),))


def moved(before: AttentionConfig, after: AttentionConfig, symbol: str) -> float:
    """How far the point of Q, K or V that moved most has moved."""
    difference = whole(after)[symbol] - whole(before)[symbol]
    return float(difference.norm(dim=-1).max())


def predicted_move(config: AttentionConfig, row: int, by: float) -> float:
    """A weight changed by `by` moves point i by x_i[row]·by, along one axis only."""
    return float(whole(config)["X"][:, row].abs().max()) * abs(by)


# --- the same in PyTorch ----------------------------------------------------------------------


def _given(config: AttentionConfig) -> str:
    made = inputs.make(config)
    return "\n".join(f"{symbol} = {one.lines}" for symbol, one in made.items())


def snippet(config: AttentionConfig) -> str:
    """The PyTorch of both matrices; `found` holds asymmetry and rows that prefer themselves."""
    return f"""import torch

{_given(config)}

found = {{}}
for name, S in (("x·x", X @ X.T), ("q·k", (X @ W_Q) @ (X @ W_K).T)):
    asymmetry = (S - S.T).norm() / S.norm()
    own = (S.diagonal() >= S.amax(-1) - {SAME} * S.abs().amax(-1)).sum()  # ties count
    found[name] = asymmetry.item(), own.item()
print(found)
"""


def census_snippet(config: AttentionConfig) -> str:
    """The PyTorch of `census`; `every` counts the draws in which every row prefers itself."""
    return f"""import torch
from torch.nn.functional import normalize

X = {inputs.make(config)["X"].lines}
g = torch.Generator().manual_seed({config.seed})
W_Q, W_K = torch.randn(2, {DRAWS}, {config.H}, {config.d_k}, generator=g) * {config.H}**-0.5
Q, K = X @ W_Q, X @ W_K
every = {{}}
for name, keys in (("W_Q = W_K", Q), ("equal length", normalize(Q, dim=-1)), ("W_Q ≠ W_K", K)):
    S = Q @ keys.mT  # ({DRAWS}, S, S)
    own = S.diagonal(dim1=-2, dim2=-1) >= S.amax(-1) - {SAME} * S.abs().amax(-1)
    every[name] = own.all(-1).sum().item()
print(every, "of {DRAWS}")
"""


def space_snippet(config: AttentionConfig, query: int) -> str:
    """The PyTorch of `keys`; `cosine`, `dot` and `weights` are those of the query."""
    return f"""import torch
from torch.nn.functional import cosine_similarity

{_given(config)}

q, K, V = X[{query}] @ W_Q, X @ W_K, X @ W_V
cosine = cosine_similarity(q, K, dim=-1)
dot = K @ q  # = |q| · |k| · cosine
weights = (dot / {config.d_k}**0.5).softmax(-1)
output = weights @ V
print(cosine.acos().rad2deg(), dot, weights, output)
"""
