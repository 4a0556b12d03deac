"""The front door: attention over your own tensors, or over a configuration, as a full trace.

>>> import torch, core
>>> q = torch.randn(1, 2, 3, 4)
>>> t = core.attend(q, q, q, causal=True)
>>> t["weights"].shape, [s.symbol for s in t.steps][-2:]
(torch.Size([1, 2, 3, 3]), ['weights', 'output'])
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import torch

from core import inputs, masks, notices, recipes
from core.config import AttentionConfig, check_window
from core.errors import SENTENCES, require
from core.recipes import Plan
from core.trace import Trace, run as run_steps


def device(prefer: str | None = None) -> torch.device:
    """The device named, else CUDA if present, then MPS, then CPU."""
    if prefer:
        return torch.device(prefer)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def attend(
    q, k, v, *, mask=None, causal=False, window=None, scale=None, softcap=None,
    past_key=None, past_value=None, softmax_dtype=None,
) -> Trace:  # fmt: skip
    """Scaled dot-product attention with every intermediate.

    q (B, h, S, d_k), k (B, g, T, d_k), v (B, g, T, d_v), g dividing h; or all three without batch
    and heads: (S, d_k), (T, d_k), (T, d_v). `mask`: bool (True = may attend) or float (added),
    (S, T) or (B or 1, h or 1, S or 1, T). `causal`: query i sees key j ≤ i + length of the past;
    "bottom-right" aligns the last query with the last key. `window`: (left, right), inclusive, −1
    for open. `scale`: default 1/√d_k. `softcap`: scores become cap·tanh(score/cap), before masks.
    A query that may see nothing gets weights 0 and output 0. Raises InputError.
    """
    _check_qkv(q, k, v, past_key, past_value)
    given = {"Q": q, "K": k, "V": v}
    with_past = past_key is not None
    if with_past:
        given = {"Q": q, "past_key": past_key, "K_new": k, "past_value": past_value, "V_new": v}
    P = past_key.shape[-2] if with_past else 0
    heads = q.ndim == 4
    sizes = {"S": q.shape[-2], "T": k.shape[-2] + P, "d_k": q.shape[-1], "d_v": v.shape[-1]}
    if heads:
        h, g = q.shape[1], k.shape[1]
        sizes |= {"B": q.shape[0], "h": h, "g": g, "r": h // g}
    if with_past:
        sizes |= {"P": P, "N": k.shape[-2]}
    plan = Plan(lead="B" if heads else "", past=with_past)
    plan = replace(plan, h=sizes.get("h", 0), g=sizes.get("g", 0))
    limits = (mask, causal, window, scale, softcap, softmax_dtype)
    plan, extra = _limits(plan, sizes, P, q, *limits)
    return run_steps(recipes.attend(plan), given | extra, sizes)


def self_attention(X, W_Q, W_K, W_V, W_O=None, *, heads=1, kv_heads=None, **limits) -> Trace:
    """Attention of a sequence to itself, from X to the output (and the projection, with W_O).

    X (B, S, H) or (S, H); W_Q (H, h·d_k), W_K (H, g·d_k), W_V (H, g·d_v), W_O (h·d_v, any).
    Other keywords as in `attend`, but no past. Raises InputError.

    >>> X, W = torch.randn(4, 6), torch.randn(6, 3)
    >>> self_attention(X, W, W, W)["output"].shape
    torch.Size([4, 3])
    """
    return _project(None, X, W_Q, W_K, W_V, W_O, heads, kv_heads, limits)


def cross_attention(Y, X, W_Q, W_K, W_V, W_O=None, *, heads=1, kv_heads=None, **limits) -> Trace:
    """Attention of a target sequence Y (queries) to a source sequence X (keys, values).

    Y (B, S, H_Y) or (S, H_Y), X (B, T, H) or (T, H), W_Q (H_Y, h·d_k); the rest as in
    `self_attention`.
    """
    return _project(Y, X, W_Q, W_K, W_V, W_O, heads, kv_heads, limits)


def run(config: AttentionConfig, device: str | None = None) -> Trace:
    """The trace of a configuration: seeded X and weights, the same on every device.

    >>> run(AttentionConfig(S=4, H=6, d_k=3))["Q"].shape
    torch.Size([4, 3])
    """
    place, dtype = globals()["device"](device), getattr(torch, config.dtype)
    made = inputs.make(config)
    lines = {s: _converted(m.lines, s, config.dtype) for s, m in made.items()}
    tensors = {s: m.tensor.to(place, dtype) for s, m in made.items()}
    mask = _config_mask(config, place)
    limits = {
        "mask": mask, "causal": config.causal, "window": config.window, "scale": config.scale,
        "softcap": config.softcap, "softmax_dtype": config.softmax_dtype,
    }  # fmt: skip
    Y = tensors.pop("Y", None)
    return _project(
        Y, tensors["X"], tensors["W_Q"], tensors["W_K"], tensors["W_V"], tensors.get("W_O"),
        config.h, config.g, limits, lines=lines, drawn=_mask_lines(config),
    )  # fmt: skip


def _converted(lines: str, symbol: str, dtype: str) -> str:
    """Code that makes an input, with its conversion where the engine does not run in float32."""
    return lines if dtype == "float32" else f"{lines}\n{symbol} = {symbol}.to(torch.{dtype})"


# --- masks ------------------------------------------------------------------------------------


def _config_mask(config: AttentionConfig, place):
    """Padding by lengths and hand-hidden pairs as one boolean mask, or None."""
    mask = None
    if config.lengths is not None:
        mask = masks.padding(list(config.lengths), config.T, device=place)
        mask = mask if config.B is not None else mask[0, 0]
    if config.hidden:
        drawn = torch.ones(config.S, config.T, dtype=torch.bool, device=place)
        for i, j in config.hidden:
            drawn[i, j] = False
        mask = drawn if mask is None else mask & drawn
    return mask


def _mask_lines(config: AttentionConfig) -> str:
    """The expression that makes the mask of a configuration, "" for none."""
    parts = []
    if config.lengths is not None:
        lengths = f"torch.tensor({list(config.lengths)})[:, None]"
        seen = f"(torch.arange({config.T}) < {lengths})"
        grid = "[:, None, None, :]" if config.h > 1 else "[:, None, :]"
        parts.append(f"{seen}{grid}" if config.B is not None else seen)
    if config.hidden:
        rows, columns = [i for i, _ in config.hidden], [j for _, j in config.hidden]
        drawn = f"torch.ones({config.S}, {config.T}, dtype=torch.bool)"
        parts.append(
            f"{drawn}.index_put((torch.tensor({rows}), torch.tensor({columns})), "
            "torch.tensor(False))"
        )
    return " & ".join(parts)


def _limits(plan, sizes, P, q, mask, causal, window, scale, softcap, softmax_dtype, drawn=None):
    """Scale, cap and masks: complete the plan, and give the tensors they add."""
    S, T = sizes["S"], sizes["T"]
    require(causal in (False, True, "bottom-right"), "causal", got=repr(causal))
    check_window(window)
    require(softcap is None or softcap > 0, "softcap", got=softcap)
    bias, seen = _split_mask(mask, plan, sizes)
    parts = [drawn] if drawn else []
    offset = T - S if causal == "bottom-right" else P
    if causal:
        below = masks.causal(S, T, offset, q.device)
        seen = below if seen is None else seen & below
        parts.append(f"torch.ones(S, T, dtype=torch.bool).tril({offset})")
    if window is not None and tuple(window) != (-1, -1):
        near = masks.window(S, T, *window, offset=offset, device=q.device)
        seen = near if seen is None else seen & near
        parts.append(_window_lines(*window, offset))
    known = mask is None or drawn is not None
    plan = replace(
        plan,
        scale=q.shape[-1] ** -0.5 if scale is None else float(scale),
        root=q.shape[-1] if scale is None else 0,
        softcap=softcap,
        softmax_dtype=softmax_dtype and str(softmax_dtype).removeprefix("torch."),
        bias="" if bias is None else _grid(plan, bias),
        mask="" if seen is None else _grid(plan, seen),
        mask_lines=" & ".join(parts) if known and seen is not None else "",
    )
    plan = replace(plan, prescaled=q.dtype == torch.float16 and plan.scale > 0)
    extra = {"bias": bias, "mask": seen}
    return plan, {name: tensor for name, tensor in extra.items() if tensor is not None}


def _window_lines(left, right, offset):
    seen = "torch.ones(S, T, dtype=torch.bool)"
    seen += f".tril({offset + right})" if right >= 0 else ""
    return seen + (f".triu({offset - left})" if left >= 0 else "")


def _grid(plan: Plan, mask) -> str:
    """Named dims of a mask, by its rank."""
    names = [plan.lead, "h" if plan.h else "", "S", plan.source]
    return " ".join([name for name in names if name][-mask.ndim :])


def _split_mask(mask, plan: Plan, sizes):
    """A mask as (what is added, what is visible); its rank, type and sizes are checked."""
    if mask is None:
        return None, None
    require(isinstance(mask, torch.Tensor), "mask-type", got=type(mask).__name__)
    shape = tuple(mask.shape)
    require(mask.ndim != 3, "mask-rank-3", shape=shape)
    wanted = (sizes.get("B", 1), sizes.get("h", 1), sizes["S"], sizes["T"])
    require(mask.ndim in (2, 4), "mask-rank", rank=mask.ndim, shape=shape)
    fits = all(n in (1, want) for n, want in zip(shape[::-1], wanted[::-1], strict=False))
    ok = fits and shape[-1] == sizes["T"]
    require(ok, "mask-shape", shape=shape, wanted=wanted, T=sizes["T"])
    if mask.ndim == 4:  # drop the axes that the scores do not have
        mask = mask if plan.h else mask[:, 0]
        mask = mask if plan.lead else mask[0]
    if mask.dtype == torch.bool:
        return None, mask
    require(mask.is_floating_point(), "mask-type", got=mask.dtype)
    if notices.looks_boolean(mask):
        warnings.warn(SENTENCES["mask-looks-boolean"], stacklevel=4)
    return mask, None


# --- checks -----------------------------------------------------------------------------------


def _check_tensors(named: dict[str, torch.Tensor]) -> None:
    """All floating, none empty, of one dtype and on one device."""
    first, reference = next(iter(named.items()))
    for name, tensor in named.items():
        shape = tuple(tensor.shape)
        require(tensor.is_floating_point(), "not-float", name=name, got=tensor.dtype)
        require(0 not in shape, "empty", name=name, shape=shape)
        pair = {"left": first, "right": name}
        same = tensor.dtype == reference.dtype
        require(same, "mixed-dtype", got=reference.dtype, wanted=tensor.dtype, **pair)
        same = tensor.device == reference.device
        require(same, "mixed-device", got=reference.device, wanted=tensor.device, **pair)


def _check_qkv(q, k, v, past_key, past_value) -> None:
    ranks = {"q": q.ndim, "k": k.ndim, "v": v.ndim}
    require(set(ranks.values()) in ({4}, {2}), "rank-mixed", **ranks)
    given, missing = ("past_key", "past_value")[:: 1 if past_value is None else -1]
    require((past_key is None) == (past_value is None), "past-pair", given=given, missing=missing)
    named = {"q": q, "k": k, "v": v}
    pairs = [("q", "k", -1, "same-width"), ("k", "v", -2, "same-length")]
    if past_key is not None:
        # A past may be of length 0: the first call of a generation loop has none.
        named |= {n: t for n, t in {"past_key": past_key, "past_value": past_value}.items()
                  if t.numel()}  # fmt: skip
        pairs += [("past_key", "k", -1, "same-width"), ("past_value", "v", -1, "same-width")]
        pairs += [("past_key", "past_value", -2, "same-length")]
    if q.ndim == 4:
        pairs += [("q", "k", 0, "same-batch"), ("q", "v", 0, "same-batch")]
        pairs += [("k", "v", 1, "same-heads")]
    _check_tensors(named)
    everything = named | {"past_key": past_key, "past_value": past_value}
    for left, right, axis, sentence in pairs:
        a, b = everything[left].shape[axis], everything[right].shape[axis]
        require(a == b, sentence, left=left, right=right, got=a, wanted=b)
    if q.ndim == 4:
        h, g = q.shape[1], k.shape[1]
        require(h % g == 0, "groups-divide", h=h, g=g)


def _check_rows(name, rows) -> None:
    require(rows.ndim in (2, 3), "rank", name=name, rank=rows.ndim, shape=tuple(rows.shape),
            wanted="2 (S, H) or 3 (B, S, H)")  # fmt: skip


def _check_product(left, a, right, b) -> None:
    require(b.ndim == 2, "rank", name=right, rank=b.ndim, shape=tuple(b.shape), wanted="2")
    facts = {"left_shape": tuple(a.shape), "right_shape": tuple(b.shape)}
    same = a.shape[-1] == b.shape[0]
    got, wanted = a.shape[-1], b.shape[0]
    require(same, "inner", left=left, right=right, got=got, wanted=wanted, **facts)


def _project(Y, X, W_Q, W_K, W_V, W_O, heads, kv_heads, limits, lines=None, drawn=None) -> Trace:
    """Self- or cross-attention from the sequences on."""
    cross = Y is not None
    asker = Y if cross else X
    kv_heads = kv_heads or heads
    named = ({"Y": Y} if cross else {}) | {"X": X, "W_Q": W_Q, "W_K": W_K, "W_V": W_V}
    named |= {"W_O": W_O} if W_O is not None else {}
    _check_projections(named, heads, kv_heads)
    d_k, d_v = W_Q.shape[1] // heads, W_V.shape[1] // kv_heads
    sizes = {"S": asker.shape[-2], "T": X.shape[-2], "H": X.shape[-1], "d_k": d_k, "d_v": d_v}
    sizes |= {"B": X.shape[0]} if X.ndim == 3 else {}
    multi = heads > 1
    sizes |= {"h": heads, "g": kv_heads, "r": heads // kv_heads} if multi else {}
    sizes |= {"H_Y": Y.shape[-1]} if cross else {}
    sizes |= {"E": W_O.shape[1]} if W_O is not None else {}
    plan = Plan(
        lead="B" if X.ndim == 3 else "",
        h=heads if multi else 0,
        g=kv_heads if multi else 0,
        source="T" if cross else "S",
        asker="H_Y" if cross and sizes["H_Y"] != sizes["H"] else "H",
        result="E" if sizes.get("E", sizes["H"]) != sizes["H"] else "H",
    )
    like = W_Q.new_empty(0, d_k)
    choices = dict.fromkeys(("mask", "window", "scale", "softcap", "softmax_dtype"))
    plan, extra = _limits(
        plan, sizes, 0, like, **(choices | {"causal": False} | limits), drawn=drawn
    )
    lines = lines or dict.fromkeys(named, "")
    return run_steps(recipes.projected(plan, lines, cross), named | extra, sizes)


def _check_projections(named, heads, kv_heads) -> None:
    """Every product fits, and every width can be split into its heads."""
    X, Y = named["X"], named.get("Y")
    _check_rows("X", X)
    if Y is not None:
        _check_rows("Y", Y)
        require(
            X.ndim == Y.ndim, "rank", name="Y", rank=Y.ndim, shape=tuple(Y.shape), wanted=X.ndim
        )
        if X.ndim == 3:
            sizes = {"got": Y.shape[0], "wanted": X.shape[0]}
            require(X.shape[0] == Y.shape[0], "same-batch", left="Y", right="X", **sizes)
    _check_tensors(named)
    require(heads % kv_heads == 0, "groups-divide", h=heads, g=kv_heads)
    asker = "X" if Y is None else "Y"
    for left, right in ((asker, "W_Q"), ("X", "W_K"), ("X", "W_V")):
        _check_product(left, named[left], right, named[right])
    for name, count in (("W_Q", heads), ("W_K", kv_heads), ("W_V", kv_heads)):
        width = named[name].shape[1]
        require(width % count == 0, "width-divide", name=name, width=width, heads=count)
    d_q, d_k = named["W_Q"].shape[1] // heads, named["W_K"].shape[1] // kv_heads
    require(d_q == d_k, "same-width", left="Q", right="K", got=d_q, wanted=d_k)
    if "W_O" in named:
        inner = named["W_V"].shape[1] // kv_heads * heads
        merged = torch.empty(math.prod(X.shape[:-1]), inner, device="meta")
        _check_product("merged", merged, "W_O", named["W_O"])
