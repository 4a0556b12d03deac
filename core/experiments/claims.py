"""Ten claims people repeat, each as one function that measures. What is shown is what runs.

Every function stands alone (torch only), takes a few numbers and returns what it measured, with
"holds": whether the claim held in this very run. The page shows the function's own source.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import torch


def shared(S=6, d=4, equal=False, seed=0):
    """Q and K from one matrix: does each position attend most to itself?"""
    g = torch.Generator().manual_seed(seed)
    X, W = torch.randn(S, d, generator=g), torch.randn(d, d, generator=g)
    Q = K = X @ W
    if equal:  # all keys of one length
        Q = K = K / K.norm(dim=-1, keepdim=True)
    scores = Q @ K.T
    own = int((scores.argmax(-1) == torch.arange(S)).sum())
    asymmetry = float((scores - scores.T).abs().max())
    long = torch.tensor([[1.0, 0.0], [3.0, 0.0]])  # one direction, two lengths
    beaten = float((long @ long.T)[0, 1] - (long @ long.T)[0, 0])
    return {"rows": S, "own": own, "asymmetry": asymmetry, "beaten": beaten, "holds": own == S}


def matmul(rows=3, inner=4, seed=0):
    """Can a transposed tensor be multiplied without contiguous()?"""
    g = torch.Generator().manual_seed(seed)
    a, b = torch.randn(rows, inner, generator=g), torch.randn(rows, inner, generator=g)
    turned = b.transpose(0, 1)
    difference = float((a @ turned - a @ turned.contiguous()).abs().max())
    try:
        refused = str(turned.view(-1).shape)
    except RuntimeError as problem:
        refused = str(problem).split(".")[0]
    contiguous = turned.is_contiguous()
    needs = difference > 1e-4  # less is rounding: another layout may add in another order
    return {"contiguous": contiguous, "difference": difference, "view": refused, "holds": needs}


def reshape(rows=3, columns=4):
    """Does reshape copy? The address of the storage tells."""
    x = torch.arange(rows * columns, dtype=torch.float32).view(rows, columns)
    same = x.reshape(-1).data_ptr() == x.data_ptr()
    turned = x.transpose(0, 1)
    again = turned.reshape(-1)
    copied = again.data_ptr() != x.data_ptr()
    moved = again.numel() * again.element_size() if copied else 0
    return {"plain_shares": same, "turned_copies": copied, "bytes": moved, "holds": not copied}


def contiguity(rows=3, columns=4, stride=7):
    """Must stride[i] = stride[i+1] · size[i+1] hold for every dimension?"""
    x = torch.arange(rows * columns * stride, dtype=torch.float32)
    odd = x.as_strided((1, rows, columns), (stride, columns, 1))
    wanted = odd.stride(1) * odd.size(1)
    broken = odd.stride(0) != wanted
    contiguous = odd.is_contiguous()
    strides = str(odd.stride())
    holds = not (broken and contiguous)
    return {"strides": strides, "wanted": wanted, "contiguous": contiguous, "holds": holds}


def fill(score=-2e9, keys=4):
    """Is −1e9 a safe mask value?"""
    seen = torch.tensor([[score, 0.0]]).masked_fill(torch.tensor([[False, True]]), -1e9)
    leak = float(seen.softmax(-1)[0, 1])  # the share of the hidden key
    blind = float(torch.full((1, keys), -1e9).softmax(-1)[0, 0])  # nothing is visible
    try:
        half = str(torch.zeros(2).half().masked_fill(torch.tensor([True, False]), -1e9)[0].item())
    except RuntimeError as problem:
        half = str(problem).splitlines()[0]
    return {"leak": leak, "blind": blind, "half": half, "holds": leak == 0 and blind == 0}


def unscaled(d_k=256, T=32, seed=0):
    """Does softmax die without 1/√d_k? And if the initialisation takes the factor in, as T5's?"""
    g = torch.Generator().manual_seed(seed)
    H, rows = 256, 64
    X = torch.randn(T, H, generator=g)
    Y = torch.randn(rows, H, generator=g)
    W_K = torch.randn(H, d_k, generator=g) * H**-0.5
    W_Q = torch.randn(H, d_k, generator=g) * H**-0.5
    found = {}
    for name, W, factor in (
        ("scaled", W_Q, d_k**-0.5),
        ("bare", W_Q, 1.0),
        ("t5", W_Q * d_k**-0.5, 1.0),
    ):
        scores = ((Y @ W) @ (X @ W_K).T * factor).requires_grad_()
        p = scores.softmax(-1)
        entropy = -(p * p.clamp_min(1e-30).log()).sum(-1)
        found[f"entropy_{name}"] = float(entropy.detach().median())
        p.amax(-1).sum().backward()  # how much the largest share can still be moved
        found[f"gradient_{name}"] = float(scores.grad.norm(dim=-1).median())
    return found | {"holds": found["entropy_t5"] < 0.5 * found["entropy_scaled"]}


def bounded(gain=20.0, T=8, seed=0):
    """Softmax's derivatives are bounded: is learning safe?"""
    x = torch.randn(T, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    calm = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), x).abs().max()
    steep = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), gain * x).abs().max()
    holds = bool(steep > 0.1 * calm)
    return {"bound": 0.25, "calm": float(calm), "steep": float(steep), "holds": holds}


def widths(S=4, H=6, h=2, d_k=5, seed=0):
    """Must d_k · h equal H?"""
    g = torch.Generator().manual_seed(seed)
    X, W_O = torch.randn(S, H, generator=g), torch.randn(h * d_k, H, generator=g)
    W_Q, W_K, W_V = (torch.randn(H, h * d_k, generator=g) for _ in range(3))
    Q, K, V = ((X @ W).view(S, h, d_k).transpose(0, 1) for W in (W_Q, W_K, W_V))
    merged = ((Q @ K.transpose(1, 2) * d_k**-0.5).softmax(-1) @ V).transpose(0, 1).reshape(S, -1)
    result = merged @ W_O
    shape = str(tuple(result.shape))
    fits = tuple(result.shape) == (S, H)
    holds = not fits and h * d_k != H
    return {"merged": h * d_k, "H": H, "shape": shape, "fits": fits, "holds": holds}


def across(S=4, h=2, d=3, seed=0):
    """Multiplying on (S, h, d): does it attend to positions?"""
    g = torch.Generator().manual_seed(seed)
    Q, K, V = (torch.randn(S, h, d, generator=g) for _ in range(3))
    attend = lambda q, k, v: (q @ k.transpose(-2, -1) * d**-0.5).softmax(-1) @ v  # noqa: E731
    wrong = attend(Q, K, V)
    right = attend(*(x.transpose(0, 1) for x in (Q, K, V))).transpose(0, 1)
    changed = V.clone()
    changed[1] += 1.0  # another token says something else: does token 0 hear it?
    heard = float((attend(Q, K, changed)[0] - wrong[0]).abs().max())
    grid = str(tuple((Q @ K.transpose(-2, -1)).shape))
    difference = float((wrong - right).abs().max())
    return {"grid": grid, "difference": difference, "heard": heard, "holds": heard > 0}


def variance(d_k=64, spread=2.0, within=0.0, seed=0):
    """Does dividing by √d_k make the variance 1?"""
    g = torch.Generator().manual_seed(seed)
    n = 20_000
    q, k = (spread * _correlated(n, d_k, within, g) for _ in range(2))
    scaled = (q * k).sum(-1) * d_k**-0.5
    # Var(q·k / √d_k) = σ⁴ (1 + (d_k − 1) ρ²)
    predicted = spread**4 * (1 + (d_k - 1) * within**2)
    measured = float(scaled.var())
    return {"measured": measured, "predicted": predicted, "holds": abs(measured - 1) < 0.1}


def _correlated(n, d, rho, g):
    """Rows of n vectors with entries of variance 1, any two of them correlated by rho."""
    common, own = torch.randn(n, 1, generator=g), torch.randn(n, d, generator=g)
    return rho**0.5 * common + (1 - rho) ** 0.5 * own


@dataclass(frozen=True)
class Asked:
    """One number of an experiment that a reader may change: its range and its first value."""

    name: str
    least: float
    most: float
    first: float | bool
    step: float = 1


@dataclass(frozen=True)
class Claim:
    """A claim: what measures it, what may be changed, the verdict ("false" or "conditional")."""

    name: str
    run: Callable
    asked: tuple[Asked, ...]
    verdict: str


SEED = Asked("seed", 0, 999, 0)
CLAIMS = {
    claim.name: claim
    for claim in (
        Claim(
            "shared",
            shared,
            (Asked("S", 2, 16, 6), Asked("d", 1, 16, 4), Asked("equal", 0, 1, False), SEED),
            "conditional",
        ),
        Claim("matmul", matmul, (Asked("rows", 2, 8, 3), Asked("inner", 2, 8, 4), SEED), "false"),
        Claim("reshape", reshape, (Asked("rows", 1, 8, 3), Asked("columns", 1, 8, 4)), "false"),
        Claim(
            "contiguity",
            contiguity,
            (Asked("rows", 2, 6, 3), Asked("columns", 2, 6, 4), Asked("stride", 1, 30, 7)),
            "false",
        ),
        Claim("fill", fill, (Asked("score", -5e9, 0, -2e9, 5e8), Asked("keys", 2, 12, 4)), "false"),
        Claim(
            "unscaled",
            unscaled,
            (Asked("d_k", 4, 512, 256, 4), Asked("T", 2, 64, 32), SEED),
            "conditional",
        ),
        Claim(
            "bounded",
            bounded,
            (Asked("gain", 1, 60, 20.0, 1.0), Asked("T", 2, 16, 8), SEED),
            "false",
        ),
        Claim(
            "widths",
            widths,
            (Asked("H", 2, 12, 6), Asked("h", 1, 4, 2), Asked("d_k", 1, 8, 5), SEED),
            "false",
        ),
        Claim(
            "across",
            across,
            (Asked("S", 2, 8, 4), Asked("h", 2, 6, 2), Asked("d", 1, 8, 3), SEED),
            "false",
        ),
        Claim(
            "variance",
            variance,
            (
                Asked("d_k", 1, 512, 64),
                Asked("spread", 0.5, 3, 2.0, 0.1),
                Asked("within", 0, 0.9, 0.0, 0.05),
                SEED,
            ),
            "conditional",
        ),
    )
}


@lru_cache(maxsize=512)
def measure(name: str, settings: tuple[tuple[str, float], ...] = ()) -> dict:
    """Run one claim's experiment with some of its numbers changed.

    >>> measure("reshape")["holds"], measure("shared", (("equal", True),))["own"]
    (False, 6)
    """
    return CLAIMS[name].run(**dict(settings))


def script(name: str, settings: tuple[tuple[str, float], ...] = ()) -> str:
    """The code that `measure` runs, as a script that prints the same numbers."""
    claim = CLAIMS[name]
    helper = [inspect.getsource(_correlated)] if name == "variance" else []
    call = ", ".join(f"{key}={value!r}" for key, value in settings)
    parts = ["import torch\n", *helper, inspect.getsource(claim.run)]
    return "\n\n".join(parts) + f"\n\nfound = {claim.run.__name__}({call})\nprint(found)\n"
