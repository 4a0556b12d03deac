"""The front door: attention over your own tensors, or over a configuration, as a full trace.

>>> import torch, core
>>> q = torch.randn(1, 2, 3, 4)
>>> t = core.attend(q, q, q, causal=True)
>>> t["weights"].shape, [s.symbol for s in t.steps][-2:]
(torch.Size([1, 2, 3, 3]), ['weights', 'output'])

At the edges of what numbers can hold:
- NaN in an input is let through; `notices` names the first step and element that has one.
- ±∞ in an input is refused, but for −∞ in a float mask, which hides a pair.
- A finite input never makes a NaN. A number too large for its type becomes ±∞ and is named in
  `notices`; a sum that would then be NaN is taken again in float64 (`ops.Contract`), a float mask
  of −∞ hides it (`ops.Bias`), a scale of 0 makes it 0 (`ops.Scale`), and keys that reach +∞ share
  their row evenly (`ops.Softmax`).
- A row of only −∞ gets the weights 0: a query that may see nothing is answered with nothing.
- In float16 q and k are scaled before their product, unless the scale is above 1 or not above 0.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace

import torch

from core import checks, inputs, masks, notices, recipes
from core.config import PAIRS, AttentionConfig, check_window
from core.errors import SENTENCES, require
from core.recipes import Plan
from core.trace import Trace
from core.trace import run as run_steps


def device(prefer: str | None = None) -> torch.device:
    """The device named, else CUDA if present, then MPS, then CPU. InputError if it is not here.

    >>> device("cpu")
    device(type='cpu')
    """
    here = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    usable = [name for name in (*here, "cpu") if here.get(name, True)]
    name = str(prefer or usable[0])
    ok = name.split(":")[0] in usable
    require(ok, "unknown-choice", name="device", got=repr(name), known=", ".join(usable))
    return torch.device(name)


def _place(prefer, dtype: str) -> torch.device:
    """Where to compute: MPS has no float64."""
    place = device(prefer)
    return torch.device("cpu") if place.type == "mps" and dtype == "float64" else place


def attend(
    q, k, v, *, mask=None, causal=False, window=None, scale=None, softcap=None,
    past_key=None, past_value=None, softmax_dtype=None, rotary=None, pairs="halves", norm=None,
    eps=1e-6,
) -> Trace:  # fmt: skip
    """Scaled dot-product attention with every intermediate.

    q (B, h, S, d_k), k (B, g, T, d_k), v (B, g, T, d_v), g dividing h; or all three without batch
    and heads: (S, d_k), (T, d_k), (T, d_v). Tensors, NumPy arrays or nested lists; NaN is let
    through and named in `notices`, infinities are refused. `mask`: bool (True = may attend) or
    float (added), (S, T) or (B or 1, h or 1, S or 1, T). `causal`: query i sees key
    j ≤ i + length of the past; "bottom-right" aligns the last query with the last key. `window`:
    (left, right), inclusive, −1 for open. `scale`: default 1/√d_k. `softcap`: scores become
    cap·tanh(score/cap), before masks. `past_key`, `past_value`: (B, g, P, d_k) and (B, g, P, d_v),
    put before k and v. `norm`: gains (d_k,) of queries and keys, each row of which is divided by
    √(mean of squares + `eps`) first. `rotary`: (cos, sin), each (S, r) with r ≤ d_k, by which the
    first r entries of queries and new keys are then turned; `pairs`: "halves" (entry j with
    j + r/2, as Llama) or "interleaved" (2i with 2i + 1, as GPT-J). A query that may see nothing
    gets weights 0 and output 0. Raises InputError.

    >>> attend([[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [[4.0], [8.0]], scale=0.0)["output"]
    tensor([[6.]])
    """
    named = checks.tensors(q=q, k=k, v=v, past_key=past_key, past_value=past_value)
    named |= checks.placing(rotary, norm)
    _present(named, "q", "k", "v")
    checks.attend(named)
    q, k, v = named["q"], named["k"], named["v"]
    with_past = "past_key" in named
    names = {"q": "Q", "k": "K_new" if with_past else "K", "v": "V_new" if with_past else "V"}
    P = named["past_key"].shape[-2] if with_past else 0
    sizes = {"S": q.shape[-2], "T": k.shape[-2] + P, "d_k": q.shape[-1], "d_v": v.shape[-1]}
    sizes |= {"P": P, "N": k.shape[-2]} if with_past else {}
    if q.ndim == 4:
        h, g = q.shape[1], k.shape[1]
        sizes |= {"B": q.shape[0], "h": h, "g": g, "r": h // g}
    plan = Plan(lead="B" if q.ndim == 4 else "", past=with_past)
    plan = replace(plan, h=sizes.get("h", 0), g=sizes.get("g", 0))
    plan = _placed(plan, sizes, named, pairs, eps)
    plan, extra = _limits(
        plan, sizes, P, q, mask=mask, causal=causal, window=window, scale=scale, softcap=softcap,
        softmax_dtype=softmax_dtype,
    )  # fmt: skip
    given = {names.get(name, name): tensor for name, tensor in named.items()}
    return run_steps(recipes.attend(plan), given | extra, sizes)


def self_attention(X, W_Q, W_K, W_V, W_O=None, *, heads=1, kv_heads=None, **limits) -> Trace:
    """Attention of a sequence to itself, from X to the output (and the projection, with W_O).

    X (B, S, H) or (S, H); W_Q (H, h·d_k), W_K (H, g·d_k), W_V (H, g·d_v), W_O (h·d_v, any).
    Other keywords as in `attend`; a past has the shapes of K and V split into heads: (B, g, P, d),
    B only with a batch, g only with several heads. Raises InputError.

    >>> X, W = torch.randn(4, 6), torch.randn(6, 3)
    >>> self_attention(X, W, W, W)["output"].shape
    torch.Size([4, 3])
    """
    return _project(None, X, W_Q, W_K, W_V, W_O, heads, kv_heads, limits)


def cross_attention(Y, X, W_Q, W_K, W_V, W_O=None, *, heads=1, kv_heads=None, **limits) -> Trace:
    """Attention of a target sequence Y (queries) to a source sequence X (keys, values).

    Y (B, S, H_Y) or (S, H_Y), X (B, T, H) or (T, H), W_Q (H_Y, h·d_k); the rest as in
    `self_attention`.

    >>> Y, X, W = torch.randn(2, 6), torch.randn(5, 6), torch.randn(6, 3)
    >>> cross_attention(Y, X, W, W, W)["weights"].shape
    torch.Size([2, 5])
    """
    _present({} if Y is None else {"Y": Y}, "Y")
    return _project(Y, X, W_Q, W_K, W_V, W_O, heads, kv_heads, limits)


def _placed(plan: Plan, sizes, named, pairs, eps) -> Plan:
    """The plan with the norm and the rotation for which tensors are named, and their sizes."""
    kind = torch.promote_types(next(iter(named.values())).dtype, torch.float32)
    eps = checks.number("eps", eps, kind)
    require(eps >= 0, "size-least", name="eps", got=eps, least=0)
    known = ", ".join(PAIRS)
    require(pairs in PAIRS, "unknown-choice", name="pairs", got=str(pairs)[:40], known=known)
    if "gain_Q" in named:
        plan = replace(plan, eps=eps)
    if "cos" in named:
        r = named["cos"].shape[-1]
        plan = replace(plan, pairs=pairs, turned=r if r < sizes["d_k"] else 0)
        if plan.turned:
            sizes["d_r"] = r
    return plan


def _present(named, *names) -> None:
    for name in names:
        require(name in named, "not-a-tensor", name=name, got="NoneType")


def run(config: AttentionConfig, device: str | None = None) -> Trace:
    """The trace of a configuration: seeded X and weights, the same on every device.

    >>> run(AttentionConfig(S=4, H=6, d_k=3))["Q"].shape
    torch.Size([4, 3])
    """
    place, dtype = _place(device, config.dtype), getattr(torch, config.dtype)
    made = inputs.make(config)
    made |= inputs.angles(config)
    lines = {s: _converted(m.lines, s, config.dtype) for s, m in made.items()}
    tensors = {s: m.tensor.to(place, dtype) for s, m in made.items()}
    mask = _config_mask(config, place)
    limits = {
        "mask": mask, "causal": config.causal, "window": config.window, "scale": config.scale,
        "softcap": config.softcap, "softmax_dtype": config.softmax_dtype,
    }  # fmt: skip
    if config.rotary:
        limits |= {"rotary": (tensors["cos"], tensors["sin"]), "pairs": config.rotary}
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


def _limits(
    plan, sizes, past, like, *, mask=None, causal=False, window=None, scale=None, softcap=None,
    softmax_dtype=None, drawn="",
):  # fmt: skip
    """Scale, cap and masks: complete the plan, and give the tensors they add.

    `past`: its length. `like`: a tensor of the scores' type and d_k wide. `drawn`: the code that
    makes the mask, where it is known.
    """
    S, T, d_k = sizes["S"], sizes["T"], like.shape[-1]
    known = isinstance(causal, bool | int | str) and causal in (False, True, "bottom-right")
    require(known, "causal", got=repr(causal)[:40])
    check_window(window)
    factor = d_k**-0.5 if scale is None else checks.number("scale", scale, like.dtype)
    cap = None if softcap is None else checks.number("softcap", softcap, like.dtype)
    require(cap is None or cap > 0, "softcap", got=cap)
    bias, seen = _split_mask(mask, plan, sizes, like)
    parts = [drawn] if drawn else []
    offset = T - S if causal == "bottom-right" else past
    if causal:
        below = masks.causal(S, T, offset, like.device)
        seen = below if seen is None else seen & below
        parts.append(f"torch.ones(S, T, dtype=torch.bool).tril({offset})")
    if window is not None and tuple(window) != (-1, -1):
        window = masks.reaching(window, S, T)
        near = masks.window(S, T, *window, offset=offset, device=like.device)
        seen = near if seen is None else seen & near
        parts.append(_window_lines(*window, offset))
    ours = seen is not None and (bool(drawn) or mask is None or bias is not None)
    plan = replace(
        plan,
        scale=factor,
        root=d_k if scale is None else 0,
        softcap=cap,
        softmax_dtype=checks.dtype_name("softmax_dtype", softmax_dtype),
        bias="" if bias is None else _grid(plan, bias),
        mask="" if seen is None else _grid(plan, seen),
        mask_lines=" & ".join(parts) if ours else "",
        # A factor above 1 could make an overflow of its own.
        prescaled=like.dtype == torch.float16 and 0 < factor <= 1,
    )
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


def _split_mask(mask, plan: Plan, sizes, like):
    """A mask as (what is added, what is visible), without axes that the scores do not have."""
    if mask is None:
        return None, None
    mask = checks.mask(mask, sizes, like)
    if mask.ndim == 4:
        mask = mask if plan.h else mask[:, 0]
        mask = mask if plan.lead else mask[0]
    if mask.dtype == torch.bool:
        return None, mask
    if notices.looks_boolean(mask):
        warnings.warn(SENTENCES["mask-looks-boolean"], stacklevel=_callers())
    return mask, None


def _callers() -> int:
    """How many frames up the code stands that called this module."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and frame.f_globals.get("__name__") == __name__:
        frame, level = frame.f_back, level + 1
    return level


def _project(Y, X, W_Q, W_K, W_V, W_O, heads, kv_heads, limits, lines=None, drawn="") -> Trace:
    """Self- or cross-attention from the sequences on."""
    limits = dict(limits)
    past = {name: limits.pop(name, None) for name in ("past_key", "past_value")}
    placing = checks.placing(**{name: limits.pop(name, None) for name in ("rotary", "norm")})
    pairs, eps = limits.pop("pairs", "halves"), limits.pop("eps", 1e-6)
    named = checks.tensors(Y=Y, X=X, W_Q=W_Q, W_K=W_K, W_V=W_V, W_O=W_O, **past)
    named |= placing
    _present(named, "X", "W_Q", "W_K", "W_V")
    kv_heads = heads if kv_heads is None else kv_heads
    checks.projections(named, heads, kv_heads)
    sizes = _sizes(named, heads, kv_heads)
    cross = "Y" in named
    plan = Plan(
        lead="B" if "B" in sizes else "",
        h=heads if heads > 1 else 0,
        g=kv_heads if heads > 1 else 0,
        source="T" if cross or "P" in sizes else "S",
        asker="H_Y" if cross and sizes["H_Y"] != sizes["H"] else "H",
        result="E" if sizes.get("E", sizes["H"]) != sizes["H"] else "H",
        past="P" in sizes,
    )
    plan = _placed(plan, sizes, named, pairs, eps)
    like = named["W_Q"].new_empty(0, sizes["d_k"])
    plan, extra = _limits(plan, sizes, sizes.get("P", 0), like, drawn=drawn, **limits)
    lines = lines or dict.fromkeys(named, "")
    return run_steps(recipes.projected(plan, lines, cross), named | extra, sizes)


def _sizes(named, heads, kv_heads) -> dict[str, int]:
    """Every named dim of a projected attention; P and N only with a past."""
    X, asker = named["X"], named.get("Y", named["X"])
    d_k, d_v = named["W_Q"].shape[1] // heads, named["W_V"].shape[1] // kv_heads
    shared = ((X.shape[0],) if X.ndim == 3 else ()) + ((kv_heads,) if heads > 1 else ())
    N = X.shape[-2]
    P = checks.past(named, (*shared, N, d_k), (*shared, N, d_v))
    sizes = {"S": asker.shape[-2], "T": N + P, "H": X.shape[-1], "d_k": d_k, "d_v": d_v}
    sizes |= {"P": P, "N": N} if "past_key" in named else {}
    sizes |= {"B": X.shape[0]} if X.ndim == 3 else {}
    sizes |= {"h": heads, "g": kv_heads, "r": heads // kv_heads} if heads > 1 else {}
    sizes |= {"H_Y": named["Y"].shape[-1]} if "Y" in named else {}
    return sizes | ({"E": named["W_O"].shape[1]} if "W_O" in named else {})
