"""Heads: the split and the merge step by step, the ways to get them wrong, what each head adds.

The split of Q, (S, H) → (S, h, d_k) → (h, S, d_k), and the way back are a trace like any other.
The wrong routes run through the same engine: what differs is the route, and nothing else.

>>> [(step.symbol, step.shape) for step in journey(S=4, H=8, h=2).steps][:3]
[('Q', (4, 8)), ('Q_split', (4, 2, 4)), ('Q_heads', (2, 4, 4))]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch

from core import inputs, ops
from core.attention import attend, self_attention
from core.attention import run as run_config
from core.config import AttentionConfig
from core.manifest import manifest
from core.recipes import Step, given
from core.trace import Trace, run

# The right route, then three that leave a transpose out: at the split, at the merge, at both.
ROUTES = ("right", "split", "merge", "across")
CODE = {
    "split": ("Q.view(B, S, h, d_k).transpose(1, 2)", "Q.view(B, h, S, d_k)"),
    "merge": ("output.transpose(1, 2).reshape(B, S, h * d_v)", "output.reshape(B, S, h * d_v)"),
    "across": ("Q_heads @ K_heads.transpose(-2, -1)", "Q_split @ K_split.transpose(-2, -1)"),
}


# --- the split and the way back, as a trace -----------------------------------------------------


@dataclass(frozen=True)
class Contiguous(ops.Rearrange):
    """The same tensor, its numbers copied into reading order."""

    effect: ClassVar[str] = "copies"

    def compute(self, x, out=None):
        return x.contiguous()

    def latex(self, reads, sizes):
        return rf"\mathrm{{contiguous}}({ops.tex(reads[0])})"

    def code(self, symbol, reads, dims, tensor):
        return f"{symbol} = {reads[0]}.contiguous()"


@dataclass(frozen=True)
class Join(ops.Merge):
    """(S, h, d) → (S, h·d) by `view`: no copy, so the memory must be in order already."""

    effect: ClassVar[str] = "views"

    def compute(self, x, out=None):
        return x.view(*x.shape[:-2], -1)

    def latex(self, reads, sizes):
        return rf"\mathrm{{view}}({ops.tex(reads[0])})"

    def code(self, symbol, reads, dims, tensor):
        return super().code(symbol, reads, dims, tensor).replace(".reshape(", ".view(")


def journey(S: int, H: int, h: int, B: int | None = None, seed: int = 0) -> Trace:
    """Q on its way into heads, through the plainest attention there is, back to rows, through W_O.

    Element [s, c] of Q holds its own address in memory, s·H + c (b·S·H more in sample b). Every
    token attends to itself alone (weights are the identity), so the numbers come out as they went
    in, but in new memory: as after any attention. Raises InputError unless h divides H.

    >>> journey(S=4, H=8, h=2)["Q_heads"][1, 0].tolist()  # head 2 begins with columns 5 to 8
    [4.0, 5.0, 6.0, 7.0]
    """
    config = AttentionConfig(S=S, H=H, h=h, B=B)
    lead = () if B is None else (B,)
    Q = torch.arange(float((B or 1) * S * H)).reshape(*lead, S, H)
    W_O = inputs.normal((H, H), seed, "W_O", H**-0.5)
    made = {"Q": Q, "weights": torch.eye(S).repeat(*lead, h, 1, 1), "W_O": W_O.tensor}
    lines = {
        "Q": f"torch.arange({float(Q.numel())}).reshape({', '.join(map(str, Q.shape))})",
        "weights": f"torch.eye(S).repeat({', '.join(map(str, (*lead, h)))}, 1, 1)",
        "W_O": W_O.lines,
    }
    return run(_journey(config, lines), made, config.sizes())


def _journey(config: AttentionConfig, lines: dict[str, str]) -> list[Step]:
    batch = "" if config.B is None else "B "
    rows, apart, heads = f"{batch}S h·d_k", f"{batch}S h d_k", f"{batch}h S d_k"
    return [
        given("Q", rows, lines["Q"]),
        Step("Q_split", ops.Split(config.h), ("Q",), apart, "split", "split"),
        Step("Q_heads", ops.Swap(), ("Q_split",), heads, "split", "heads"),
        given("weights", f"{batch}h S S", lines["weights"]),
        Step("output", ops.Contract(), ("weights", "Q_heads"), heads, "mix", "output"),
        Step("swapped", ops.Swap(), ("output",), apart, "merge", "swapped"),
        Step("contiguous", Contiguous(), ("swapped",), apart, "merge", "contiguous"),
        Step("merged", Join(), ("contiguous",), rows, "merge", "merged"),
        given("W_O", "h·d_k H", lines["W_O"]),
        Step("projected", ops.Contract(), ("merged", "W_O"), f"{batch}S H", "merge", "projected"),
    ]


MOVED = ("Q", "Q_split", "Q_heads", "output", "swapped", "contiguous", "merged")


def coordinates(trace: Trace) -> dict[str, list]:
    """Per tensor that holds the numbers of Q, nested lists of "row,column" in Q, from 1.

    >>> coordinates(journey(S=4, H=8, h=2))["Q_heads"][1][0]
    ['1,5', '1,6', '1,7', '1,8']
    """
    S, H = trace.shape("Q")[-2:]
    return {symbol: _named(trace[symbol].long() % (S * H), H) for symbol in MOVED}


def _named(addresses: torch.Tensor, H: int) -> list:
    def name(cell):
        return (
            [name(c) for c in cell] if isinstance(cell, list) else f"{cell // H + 1},{cell % H + 1}"
        )

    return name(addresses.tolist())


def drawn(trace: Trace) -> tuple[dict, np.ndarray]:
    """The manifest of a journey: every cell that comes from Q shows its coordinates there, and
    wears the colour of its head."""
    described, values = manifest(trace)
    named = coordinates(trace)
    for step in described["steps"]:
        if step["symbol"] in named:
            step |= {"display": named[step["symbol"]], "tint": "h"}
    return described, values


# --- wrong routes -------------------------------------------------------------------------------


class Routed(NamedTuple):
    """Attention along one route: the trace from queries to output, the merged rows, the result."""

    attention: Trace
    merged: torch.Tensor
    projected: torch.Tensor


def route(trace: Trace, how: str, causal: bool = False) -> Routed:
    """Attention over the Q, K, V (B, S, h·d) of a trace along one of ROUTES, then its W_O.

    >>> t = run_config(AttentionConfig(B=1, S=4, H=8, h=2, project=True))
    >>> route(t, "split").attention.shape("Q"), route(t, "across").attention.shape("weights")
    ((1, 2, 4, 4), (1, 4, 2, 2))
    """
    q, k, v = (_into_heads(trace[symbol], _heads(trace), how) for symbol in "QKV")
    attention = attend(q, k, v, causal=causal)
    merged = _out_of_heads(attention["output"], how)
    return Routed(attention, merged, merged @ trace["W_O"])


def _heads(trace: Trace) -> int:
    """Number of heads; a trace of one head has no such axis."""
    return trace.sizes.get("h", 1)


def _into_heads(x, h, how):
    B, S, width = x.shape
    if how == "split":
        return x.view(B, h, S, width // h)
    apart = x.view(B, S, h, width // h)
    return apart if how == "across" else apart.transpose(1, 2)


def _out_of_heads(x, how):
    """(B, h, S, d), or (B, S, h, d) where heads were never swapped in, → (B, S, h·d)."""
    if how == "across":
        return x.flatten(-2)
    B, h, S, d = x.shape
    return (x if how == "merge" else x.transpose(1, 2)).reshape(B, S, h * d)


class Comparison(NamedTuple):
    """A wrong route beside the right one: per token (of sample 1) the largest |difference| of the
    result, the largest of all samples, and the largest |number| of the right result, for scale."""

    right: Routed
    wrong: Routed
    per_token: list[float]
    largest: float
    scale: float


def compare(config: AttentionConfig, how: str) -> Comparison:
    """Run a configuration (with `B` and `project`) along the right route and along `how`.

    >>> compare(AttentionConfig(B=1, S=4, H=8, h=1, project=True), "split").largest  # one head
    0.0
    """
    trace = run_config(config)
    right, wrong = (route(trace, which, config.causal) for which in ("right", how))
    gap = (right.projected - wrong.projected).abs()
    scale = float(right.projected.abs().max())
    return Comparison(right, wrong, gap[0].amax(-1).tolist(), float(gap.max()), scale)


class Origins(NamedTuple):
    """Where each cell of a tensor came from: (token, column) of the row it was computed in, from 0.

    `cells` is nested as the tensor is; `counts[i][s]`: cells of block i that belong to token s.
    """

    shape: tuple[int, ...]
    cells: list
    counts: list[list[int]]


def origins(S: int, h: int, d_k: int, how: str) -> Origins:
    """Follow the cells of one sample into heads (`how` "right" or "split"), or back out of them
    ("back" or "merge"); the second of each pair is the wrong way.

    Blocks are heads on the way in, rows on the way back.

    >>> origins(S=4, h=2, d_k=4, how="split").counts  # head 1 holds tokens 1 and 2 whole
    [[8, 8, 0, 0], [0, 0, 8, 8]]
    """
    rows = torch.arange(S * h * d_k).view(1, S, h * d_k)
    placed = _into_heads(rows, h, how)[0]
    if how in ("back", "merge"):
        placed = _out_of_heads(placed[None], how)[0]
    tokens = placed.flatten(1) // (h * d_k)
    counts = [torch.bincount(block, minlength=S).tolist() for block in tokens]
    cells = torch.stack((placed // (h * d_k), placed % (h * d_k)), -1)
    return Origins(tuple(placed.shape), cells.tolist(), counts)


def influence(config: AttentionConfig, how: str) -> list[list[float]]:
    """Who hears whom: [i][j] is how far result row i moves when token j's vector changes its sign.

    Computed in float64 on one sample; below 1e-9 counts as not at all (0).

    >>> config = AttentionConfig(S=3, H=4, h=2, causal=True)
    >>> [[cell > 0 for cell in row] for row in influence(config, "right")]
    [[True, False, False], [True, True, False], [True, True, True]]
    """
    config = config.changed(B=1, dtype="float64", project=True)
    trace, S = run_config(config), config.S
    flipped = trace["X"].repeat(S + 1, 1, 1)  # (S + 1, S, H), the last one left alone
    for j in range(S):
        flipped[j, j] *= -1
    weights = [trace[symbol] for symbol in ("W_Q", "W_K", "W_V", "W_O")]
    many = self_attention(flipped, *weights, heads=config.h)
    result = route(many, how, config.causal).projected
    moved = (result[:S] - result[S]).abs().amax(-1)  # (changed token, row)
    return torch.where(moved < 1e-9, 0.0, moved).T.tolist()


# --- one big W_Q, or h small ones ---------------------------------------------------------------


class Slice(NamedTuple):
    """One head's own columns of W (H, d), its product X·W (S, d), and the largest |difference| to
    the same columns of the big product."""

    weight: torch.Tensor
    product: torch.Tensor
    difference: float


def slices(trace: Trace, symbol: str = "Q") -> list[Slice]:
    """Cut W_Q into h matrices and multiply X by each on its own.

    >>> cut = slices(run_config(AttentionConfig(S=4, H=8, h=2)))
    >>> [tuple(piece.weight.shape) for piece in cut], max(piece.difference for piece in cut) < 1e-6
    ([(8, 4), (8, 4)], True)
    """
    X, h, made = trace["X"], _heads(trace), []
    pieces = zip(trace[f"W_{symbol}"].chunk(h, -1), trace[symbol].chunk(h, -1), strict=True)
    for weight, part in pieces:
        product = X @ weight
        made.append(Slice(weight, product, float((product - part).abs().max())))
    return made


# --- what each head adds ------------------------------------------------------------------------


class Contributions(NamedTuple):
    """What each head adds to each row (…, h, S, E); `difference` of their sum to the result."""

    parts: torch.Tensor
    difference: float


def contributions(trace: Trace) -> Contributions:
    """output_i · W_O[rows of head i] for every head: a product with the merged rows, taken apart.

    >>> t = run_config(AttentionConfig(S=4, H=8, h=2, project=True))
    >>> contributions(t).parts.shape, contributions(t).difference < 1e-6
    (torch.Size([2, 4, 8]), True)
    """
    output, h = trace["output"], _heads(trace)
    output = output if h > 1 else output.unsqueeze(-3)
    parts = output @ trace["W_O"].unflatten(0, (h, -1))
    gap = parts.sum(-3) - trace["projected"]
    return Contributions(parts, float(gap.abs().max()))


# --- d_k·h = H, or not --------------------------------------------------------------------------


def view_refusal(trace: Trace) -> str | None:
    """What torch says to `merged.view(…, S, H)`, the line that takes h·d_v = H for granted."""
    merged = trace["merged" if "merged" in trace else "output"]  # one head: nothing to merge
    try:
        merged.view(*merged.shape[:-1], trace.sizes["H"])
    except RuntimeError as refused:
        return f"RuntimeError: {refused}"
    return None
