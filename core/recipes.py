"""Attention variants, each a list of steps over the vocabulary of `ops`.

A step names what it makes, from what, with which named dims. Steps hold no numbers and no tensors:
`trace.run` computes them in this order.
"""

from __future__ import annotations

from dataclasses import dataclass

from core import ops

STAGES = (
    "input", "project", "split", "place", "compare", "scale", "mask", "normalise", "mix", "merge"
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One record: the symbol made, the op, what it reads, its named dims, stage and text id."""

    symbol: str
    op: ops.Op
    reads: tuple[str, ...]
    dims: str
    stage: str
    text: str


@dataclass(frozen=True)
class Plan:
    """What decides which steps there are.

    `lead`: "B" with a batch axis, else "". `h`, `g`: heads, 0 for no head axis. `source`: the name
    of the keys' axis, "S" where queries and keys are the same positions. `asker`, `result`: names
    of the width of the queries' sequence and of the projection. `bias`, `mask`: their named dims.
    """

    lead: str = ""
    h: int = 0
    g: int = 0
    source: str = "T"
    asker: str = "H"
    result: str = "H"
    past: bool = False
    scale: float = 1.0
    root: int = 0
    softcap: float | None = None
    bias: str = ""
    mask: str = ""
    mask_lines: str = ""
    softmax_dtype: str | None = None
    prescaled: bool = False
    eps: float | None = None
    pairs: str = ""
    turned: int = 0


def _join(*names: str) -> str:
    return " ".join(name for name in names if name)


def given(symbol: str, dims: str, lines: str = "", text: str = "") -> Step:
    """A step that hands a tensor in."""
    return Step(symbol, ops.Given(lines), (), dims, "input", text or symbol)


def project(symbol: str, source: str, row: str, inner: str, width: str, plan: Plan, lines: str):
    """W and its product: Q = X·W_Q."""
    weight = f"W_{symbol}"
    dims = _join(plan.lead, row, width)
    return [
        given(weight, f"{inner} {width}", lines),
        Step(symbol, ops.Contract(), (source, weight), dims, "project", symbol),
    ]


def split(symbol: str, row: str, heads: str, width: str, plan: Plan):
    """(S, h·d) → (S, h, d) → (h, S, d): two steps that move nothing in memory."""
    apart, ready = f"{symbol}_split", f"{symbol}_heads"
    before = _join(plan.lead, row, heads, width)
    after = _join(plan.lead, heads, row, width)
    count = plan.h if heads == "h" else plan.g
    return [
        Step(apart, ops.Split(count), (symbol,), before, "split", "split"),
        Step(ready, ops.Swap(), (apart,), after, "split", "heads"),
    ]


def repeat(symbol: str, source: str, width: str, plan: Plan) -> Step:
    """Key/value heads repeated so that each query head finds its own."""
    dims = _join(plan.lead, "h", plan.source, width)
    return Step(symbol, ops.Repeat(plan.h // plan.g), (source,), dims, "split", "repeat")


def past(symbol: str, new: str, width: str, plan: Plan) -> list[Step]:
    """Keys (or values) of earlier tokens, then the new ones: K = cat(past_key, K_new)."""
    earlier = "past_key" if symbol[0] == "K" else "past_value"
    head = _shared_head(plan)
    joined = _join(plan.lead, head, plan.source, width)
    return [
        given(earlier, _join(plan.lead, head, "P", width), text="past"),
        Step(symbol, ops.Concat(), (earlier, new), joined, "input", "past"),
    ]


def _shared_head(plan: Plan) -> str:
    """The name of the key/value heads' axis: h where every query head has its own."""
    return "" if not plan.h else "h" if plan.g == plan.h else "g"


def placed(
    query: str, key: str, row: str, plan: Plan, lines: dict[str, str] | None = None
) -> tuple[list[Step], str, str]:
    """Queries and keys normalised, then turned by their position, each only where it is asked for.

    `row`: the name of the keys' positions; `lines`: the code that makes cos and sin, if known.
    Also says what the queries and keys are called now.
    """
    steps, made, lines = [], {}, lines or {}
    places = {query: ("Q", "h" if plan.h else "", "S"), key: ("K", _shared_head(plan), row)}
    for symbol, (name, head, rows) in places.items():
        dims, last = _join(plan.lead, head, rows, "d_k"), symbol
        if plan.eps is not None:
            gain, normed = f"gain_{name}", f"{name}_normed"
            steps.append(Step(gain, ops.Given(), (), "d_k", "place", "gain"))
            steps.append(Step(normed, ops.Rms(plan.eps), (last, gain), dims, "place", "normed"))
            last = normed
        made[name] = (last, dims)
    if plan.pairs:
        width = f"S {'d_r' if plan.turned else 'd_k'}"
        steps += [
            Step(name, ops.Given(lines.get(name, "")), (), width, "place", "angles")
            for name in ("cos", "sin")
        ]
        for name, (last, dims) in made.items():
            turn, symbol = ops.Rotate(plan.pairs, plan.turned), f"{name}_rotated"
            steps.append(Step(symbol, turn, (last, "cos", "sin"), dims, "place", "rotated"))
            made[name] = (symbol, dims)
    return steps, made["Q"][0], made["K"][0]


def attend(plan: Plan) -> list[Step]:
    """Attention over given queries, keys and values, (B, h, S, d_k) or (S, d_k)."""
    head, shared = "h" if plan.h else "", _shared_head(plan)
    new, row = ("_new", "N") if plan.past else ("", plan.source)
    key, value = f"K{new}", f"V{new}"
    steps = [
        given("Q", _join(plan.lead, head, "S", "d_k"), text="given"),
        given(key, _join(plan.lead, shared, row, "d_k"), text="given"),
        given(value, _join(plan.lead, shared, row, "d_v"), text="given"),
    ]
    more, query, key = placed("Q", key, row, plan)
    steps += more
    if plan.past:
        steps += past("K", key, "d_k", plan) + past("V", value, "d_v", plan)
        key, value = "K", "V"
    return steps + attention(query, key, value, plan)


def attention(query: str, key: str, value: str, plan: Plan) -> list[Step]:
    """From queries, keys and values to the output: compare, scale, cap, bias, mask, share, mix."""
    head = "h" if plan.h else ""
    grid = _join(plan.lead, head, "S", plan.source)
    steps = []
    if plan.g != plan.h:
        steps += [repeat("K_repeat", key, "d_k", plan), repeat("V_repeat", value, "d_v", plan)]
        key, value = "K_repeat", "V_repeat"
    steps.append(Step("scores", ops.Compare(), (query, key), grid, "compare", "scores"))
    steps += _scaled(query, key, grid, head, plan) + _limited(grid, plan)
    weights = Step(
        "weights",
        ops.Softmax(plan.softmax_dtype or ""),
        (steps[-1].symbol,),
        grid,
        "normalise",
        "weights",
    )
    mixed = _join(plan.lead, head, "S", "d_v")
    output = Step("output", ops.Contract(), ("weights", value), mixed, "mix", "output")
    return [*steps, weights, output]


def _scaled(query, key, grid, head, plan: Plan) -> list[Step]:
    """The scaled scores; in float16 q and k are scaled first, for q·k itself may pass 65,504."""
    if not plan.prescaled:
        scale = ops.Scale(plan.scale, plan.root)
        return [Step("scaled", scale, ("scores",), grid, "scale", "scaled")]
    # The same expression as in the script that `source` writes, so that no digit can differ.
    factor = plan.root**-0.25 if plan.root else plan.scale**0.5
    half = ops.Scale(factor, plan.root, half=True)
    q, k = _join(plan.lead, head, "S", "d_k"), _join(plan.lead, head, plan.source, "d_k")
    return [
        Step("Q_prescaled", half, (query,), q, "scale", "prescaled"),
        Step("K_prescaled", half, (key,), k, "scale", "prescaled"),
        Step("scaled", ops.Compare(), ("Q_prescaled", "K_prescaled"), grid, "scale", "scaled"),
    ]


def _limited(grid, plan: Plan) -> list[Step]:
    """Softcap, float mask and boolean mask, in this order, each only where it is used."""
    last, steps = "scaled", []
    if plan.softcap:
        steps.append(Step("capped", ops.Softcap(plan.softcap), (last,), grid, "scale", "capped"))
        last = "capped"
    if plan.bias:
        steps.append(given("bias", plan.bias))
        steps.append(Step("biased", ops.Bias(), (last, "bias"), grid, "mask", "biased"))
        last = "biased"
    if plan.mask:
        steps.append(given("mask", plan.mask, plan.mask_lines))
        steps.append(Step("masked", ops.Mask(), (last, "mask"), grid, "mask", "masked"))
    return steps


def merge(plan: Plan) -> list[Step]:
    """(h, S, d_v) → (S, h, d_v) → (S, h·d_v): the heads side by side again."""
    apart = _join(plan.lead, "S", "h", "d_v")
    whole = _join(plan.lead, "S", "h·d_v")
    return [
        Step("swapped", ops.Swap(), ("output",), apart, "merge", "swapped"),
        Step("merged", ops.Merge(), ("swapped",), whole, "merge", "merged"),
    ]


def projected(plan: Plan, lines: dict[str, str], cross: bool = False) -> list[Step]:
    """Self-attention from X, or cross-attention from Y (queries) and X, to the projection.

    `lines` gives, per input symbol, the code that makes it ("" for none); with "W_O" in it the
    result is projected.
    """
    asker, row = ("Y", plan.source) if cross else ("X", "S")
    row = "N" if cross and plan.past else row  # of a past's T keys, X makes the last N
    steps = [given(asker, _join(plan.lead, "S", plan.asker), lines[asker])]
    width = "h·d_k" if plan.h else "d_k"
    steps += project("Q", asker, "S", plan.asker, width, plan, lines["W_Q"])
    if cross:
        steps.append(given("X", _join(plan.lead, row, "H"), lines["X"]))
    shared = _shared_head(plan)
    for name, width in (("K", "d_k"), ("V", "d_v")):
        width = f"{shared}·{width}" if plan.h else width
        steps += project(name, "X", row, "H", width, plan, lines[f"W_{name}"])
    query, key, value = "Q", "K", "V"
    if plan.h:
        steps += split("Q", "S", "h", "d_k", plan)
        steps += split("K", row, shared, "d_k", plan)
        steps += split("V", row, shared, "d_v", plan)
        query, key, value = "Q_heads", "K_heads", "V_heads"
    more, query, key = placed(query, key, row, plan, lines)
    steps += more
    if plan.past:
        steps += past("K_all", key, "d_k", plan) + past("V_all", value, "d_v", plan)
        key, value = "K_all", "V_all"
    steps += attention(query, key, value, plan) + (merge(plan) if plan.h else [])
    if "W_O" not in lines:
        return steps
    last, inner = ("merged", "h·d_v") if plan.h else ("output", "d_v")
    dims = _join(plan.lead, "S", plan.result)
    return [
        *steps,
        given("W_O", f"{inner} {plan.result}", lines["W_O"]),
        Step("projected", ops.Contract(), (last, "W_O"), dims, "merge", "projected"),
    ]
