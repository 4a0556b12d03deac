"""What is refused before anything is computed, and how numbers that are no tensors become some.

Every refusal is an InputError that names the tensor, the sizes and the way out.

>>> tensors(X=[[1.0, 2.0]], Y=None)
{'X': tensor([[1., 2.]])}
"""

from __future__ import annotations

import math

import numpy as np
import torch

from core.config import DTYPES, check_held
from core.errors import require
from core.ops import peak


def tensors(**given) -> dict[str, torch.Tensor]:
    """Tensors by name, None left out: a tensor as it is, a NumPy array or nested lists copied."""
    return {name: _tensor(name, value) for name, value in given.items() if value is not None}


def _tensor(name, value) -> torch.Tensor:
    kind = type(value).__name__
    if not isinstance(value, torch.Tensor):
        try:
            value = torch.tensor(np.array(value) if hasattr(value, "__array__") else value)
        except (TypeError, ValueError, RuntimeError, OverflowError):
            require(False, "not-a-tensor", name=name, got=kind)
    if value.is_nested or value.is_meta:
        require(False, "not-a-tensor", name=name, got="nested" if value.is_nested else "meta")
    if value.is_inference():  # autograd refuses those; a copy made outside the mode is like others
        with torch.inference_mode(False):
            value = value.clone()
    value = value.detach()
    return value if value.layout == torch.strided else value.to_dense()


def floating(named: dict[str, torch.Tensor]) -> None:
    """All in one of the four floating types, of one type, on one device, not empty, no infinity."""
    first, reference = next(iter(named.items()))
    for name, tensor in named.items():
        shape, past = tuple(tensor.shape), name.startswith("past")
        require(str(tensor.dtype)[6:] in DTYPES, "not-float", name=name, got=tensor.dtype)
        # A past may be of length 0: the first call of a generation loop has none.
        require(past or 0 not in shape, "empty", name=name, shape=shape)
        _alike(first, reference, name, tensor)
        if peak(tensor) == math.inf:
            where = tuple(tensor.isinf().nonzero()[0].tolist())
            require(False, "infinite", name=name, index=where)


def _alike(first, reference, name, tensor) -> None:
    pair = {"left": first, "right": name}
    same = tensor.dtype == reference.dtype
    require(same, "mixed-dtype", got=reference.dtype, wanted=tensor.dtype, **pair)
    same = tensor.device == reference.device
    require(same, "mixed-device", got=reference.device, wanted=tensor.device, **pair)


def placing(rotary, norm) -> dict[str, torch.Tensor]:
    """cos and sin, and the gains of queries and keys, by name; each pair may be None."""
    named = {}
    for pair, names, sentence in (
        (rotary, ("cos", "sin"), "rotary-pair"),
        (norm, ("gain_Q", "gain_K"), "gain-pair"),
    ):
        if pair is None:
            continue
        two = isinstance(pair, tuple | list) and len(pair) == 2
        two = two and all(one is not None for one in pair)  # an array answers `in` by its elements
        require(two, sentence, got=type(pair).__name__)
        named |= tensors(**dict(zip(names, pair, strict=True)))
    return named


def count(name: str, value) -> int:
    """A whole number of at least 1."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    require(whole, "not-whole", name=name, got=repr(value)[:40])
    require(value >= 1, "size-least", name=name, got=value, least=1)
    return value


def number(name: str, value, dtype: torch.dtype) -> float:
    """A finite number that a type can hold; 0 stays 0.

    >>> number("scale", 0.5, torch.float16)
    0.5
    """
    try:
        real = float(value)
    except (TypeError, ValueError, OverflowError):
        real = math.nan
    require(math.isfinite(real), "not-a-number", name=name, got=repr(value)[:40])
    check_held(name, real, str(dtype).removeprefix("torch."))
    return real


def dtype_name(name: str, value) -> str:
    """The name of a floating type given as such or by name, "" for None."""
    short = "" if value is None else str(value).removeprefix("torch.")
    known = ("", *DTYPES)
    require(short in known, "unknown-choice", name=name, got=short[:40], known=", ".join(DTYPES))
    return short


# --- queries, keys and values -------------------------------------------------------------------


def attend(named: dict[str, torch.Tensor]) -> None:
    """q, k, v and the past, as `attention.attend` takes them."""
    q, k, v = named["q"], named["k"], named["v"]
    ranks = {"q": q.ndim, "k": k.ndim, "v": v.ndim}
    require(set(ranks.values()) in ({4}, {2}), "rank-mixed", **ranks)
    floating(named)
    _same("q", q, "k", k, -1, "same-width")
    _same("k", k, "v", v, -2, "same-length")
    if q.ndim == 4:
        _same("q", q, "k", k, 0, "same-batch")
        _same("q", q, "v", v, 0, "same-batch")
        _same("k", k, "v", v, 1, "same-heads")
        require(q.shape[1] % k.shape[1] == 0, "groups-divide", h=q.shape[1], g=k.shape[1])
    past(named, k.shape, v.shape)
    turning(named, q.shape[-2], k.shape[-2], q.shape[-1])


def turning(named: dict[str, torch.Tensor], S: int, N: int, d_k: int) -> None:
    """cos and sin (S, r) and the gains (d_k,) fit queries (S, d_k) and as many new keys."""
    pair = [name for name in ("cos", "sin") if name in named]
    for name in pair:
        shape = tuple(named[name].shape)
        fits = len(shape) == 2 and shape[0] == S and shape[1] % 2 == 0 and shape[1] <= d_k
        require(fits, "rotary-shape", name=name, shape=shape, S=S, d_k=d_k)
    if pair:
        cos, sin = (tuple(named[name].shape) for name in pair)
        require(cos == sin, "rotary-width", cos=cos, sin=sin)
        require(S == N, "rotary-length", S=S, N=N)
    for name in ("gain_Q", "gain_K"):
        if name in named:
            shape = tuple(named[name].shape)
            require(shape == (d_k,), "gain-shape", name=name, shape=shape, d_k=d_k)


def past(named: dict[str, torch.Tensor], keys, values) -> int:
    """The past fits before new keys and values of these shapes; its length."""
    given = [name for name in ("past_key", "past_value") if name in named]
    if not given:
        return 0
    missing = "past_value" if given[0] == "past_key" else "past_key"
    require(len(given) == 2, "past-pair", given=given[0], missing=missing)
    for name, shape in (("past_key", keys), ("past_value", values)):
        found, free = tuple(named[name].shape), len(shape) - 2
        wanted = [*shape[:free], "P", shape[-1]]
        fits = len(found) == len(shape) and (*found[:free], "P", found[-1]) == tuple(wanted)
        shown = f"({', '.join(map(str, wanted))})"
        require(fits, "past-shape", name=name, shape=found, wanted=shown)
    key, value = named["past_key"], named["past_value"]
    _same("past_key", key, "past_value", value, -2, "same-length")
    return key.shape[-2]


def _same(left, a, right, b, axis, sentence) -> None:
    got, wanted = a.shape[axis], b.shape[axis]
    require(got == wanted, sentence, left=left, right=right, got=got, wanted=wanted)


# --- sequences and their projections --------------------------------------------------------------


def projections(named: dict[str, torch.Tensor], heads: int, kv_heads: int) -> None:
    """Every product fits, and every width can be split into its heads."""
    X, Y = named["X"], named.get("Y")
    for name in ("X", "Y") if Y is not None else ("X",):
        rows, wanted = named[name], "2 (S, H) / 3 (B, S, H)"
        require(rows.ndim in (2, 3), "rank", wanted=wanted, **_facts(name, rows))
    floating(named)
    if Y is not None:
        require(X.ndim == Y.ndim, "rank", wanted=X.ndim, **_facts("Y", Y))
        if X.ndim == 3:
            _same("Y", Y, "X", X, 0, "same-batch")
    count("heads", heads)
    count("kv_heads", kv_heads)
    require(heads % kv_heads == 0, "groups-divide", h=heads, g=kv_heads)
    asker = "X" if Y is None else "Y"
    for left, right in ((asker, "W_Q"), ("X", "W_K"), ("X", "W_V")):
        _product(left, named[left].shape, right, named[right])
    widths = [_width(named, "W_Q", heads), _width(named, "W_K", kv_heads)]
    require(widths[0] == widths[1], "same-width", left="Q", right="K", got=widths[0],
            wanted=widths[1])  # fmt: skip
    S = named[asker].shape[-2]
    turning(named, S, X.shape[-2], widths[0])
    inner = _width(named, "W_V", kv_heads) * heads
    if "W_O" in named:
        rows = named[asker].shape[:-1]
        _product("merged" if heads > 1 else "output", (*rows, inner), "W_O", named["W_O"])


def _facts(name, tensor) -> dict:
    return {"name": name, "rank": tensor.ndim, "shape": tuple(tensor.shape)}


def _product(left, a, right, b) -> None:
    require(b.ndim == 2, "rank", wanted="2", **_facts(right, b))
    facts = {"left_shape": tuple(a), "right_shape": tuple(b.shape)}
    got, wanted = a[-1], b.shape[0]
    require(got == wanted, "inner", left=left, right=right, got=got, wanted=wanted, **facts)


def _width(named, name, heads) -> int:
    """The width of one head of a projection."""
    width = named[name].shape[1]
    require(width % heads == 0, "width-divide", name=name, width=width, heads=heads)
    return width // heads


# --- masks --------------------------------------------------------------------------------------


def mask(given, sizes: dict[str, int], like: torch.Tensor) -> torch.Tensor:
    """A mask over scores (B, h, S, T) that `like` is of the type and on the device of."""
    tensor = _tensor("mask", given)
    shape = tuple(tensor.shape)
    require(tensor.ndim != 3, "mask-rank-3", shape=shape)
    require(tensor.ndim in (2, 4), "mask-rank", rank=tensor.ndim, shape=shape)
    wanted = (sizes.get("B", 1), sizes.get("h", 1), sizes["S"], sizes["T"])
    fits = all(n in (1, want) for n, want in zip(shape[::-1], wanted[::-1], strict=False))
    ok = fits and shape[-1] == sizes["T"]
    require(ok, "mask-shape", shape=shape, wanted=wanted, T=sizes["T"])
    boolean = tensor.dtype == torch.bool
    require(boolean or tensor.is_floating_point(), "mask-type", got=tensor.dtype)
    typed = torch.empty(0, dtype=tensor.dtype if boolean else like.dtype, device=like.device)
    _alike("scores", typed, "mask", tensor)
    if not boolean and peak(tensor) == math.inf and bool((tensor == math.inf).any()):
        where = tuple((tensor == math.inf).nonzero()[0].tolist())
        require(False, "mask-infinite", index=where)
    return tensor
