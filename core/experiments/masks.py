"""Masks, run live: composition, both polarities, −∞ against −1e9, queries that see nothing, a past.

All of it is torch itself on small tensors; what torch refuses comes back as its own message.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.nn.functional as F

from core import masks
from core.attention import attend
from core.config import AttentionConfig
from core.inputs import normal

FILL = -1e9


def parts(config: AttentionConfig, sample: int = 0) -> dict[str, torch.Tensor]:
    """The boolean masks (S, T) a configuration is composed of, then "all": what all of them leave.

    >>> found = parts(AttentionConfig(S=3, causal=True, hidden=((2, 0),)))
    >>> list(found), found["all"].int().tolist()
    (['causal', 'drawn', 'all'], [[1, 0, 0], [1, 1, 0], [0, 1, 1]])
    """
    S, T, found = config.S, config.T, {}
    if config.causal:
        found["causal"] = masks.causal(S, T, T - S if config.causal == "bottom-right" else 0)
    if config.window:
        found["window"] = masks.window(S, T, *config.window)
    if config.lengths:
        found["padding"] = masks.padding(list(config.lengths), T)[sample, 0].expand(S, T)
    if config.hidden:
        drawn = torch.ones(S, T, dtype=torch.bool)
        for i, j in config.hidden:
            drawn[i, j] = False
        found["drawn"] = drawn
    every = torch.ones(S, T, dtype=torch.bool)
    for mask in found.values():
        every = every & mask
    return found | {"all": every}


def polarities(visible: torch.Tensor) -> dict[str, torch.Tensor]:
    """One mask in the three forms PyTorch takes.

    "sdpa": bool, True = may attend. "multihead": bool, True = hidden. "float": added, 0 or −∞.
    """
    added = torch.zeros(visible.shape).masked_fill(~visible, -torch.inf)
    return {"sdpa": visible, "multihead": masks.from_multihead(visible), "float": added}


@dataclass(frozen=True)
class Outcome:
    """What one way of masking gave: weights, output, or the message torch refused with."""

    way: str
    weights: tuple[float, ...] = ()
    output: tuple[float, ...] = ()
    refused: str = ""


def _floats(tensor) -> tuple[float, ...]:
    return tuple(float(x) for x in tensor.flatten())


@lru_cache(maxsize=64)
def blind(T: int = 4, seed: int = 0) -> tuple[Outcome, ...]:
    """One query whose T keys are all hidden: what each way makes of it.

    Output values are those of the first two columns of V.

    >>> [o.way for o in blind(3) if o.output[0] != o.output[0]]  # NaN
    ['multihead', 'softmax']
    """
    q, k, v = (normal((n, 2), seed, name).tensor for n, name in ((1, "q"), (T, "k"), (T, "v")))
    hidden = torch.zeros(1, T, dtype=torch.bool)  # True = may attend: nothing may
    scores = q @ k.T * 2**-0.5
    plain = scores.masked_fill(~hidden, -torch.inf).softmax(-1)
    filled = scores.masked_fill(~hidden, FILL).softmax(-1)
    ours = attend(q, k, v, mask=hidden)
    return (
        Outcome("sdpa", output=_floats(_sdpa(q, k, v, hidden))),
        _multihead(q, k, v, hidden, True),
        _multihead(q, k, v, hidden, False),
        Outcome("softmax", _floats(plain), _floats(plain @ v)),
        Outcome("fill", _floats(filled), _floats(filled @ v)),
        Outcome("ours", _floats(ours["weights"]), _floats(ours["output"])),
    )


def _sdpa(q, k, v, mask):
    return F.scaled_dot_product_attention(q[None, None], k[None, None], v[None, None], mask)


def _multihead(q, k, v, visible, need_weights) -> Outcome:
    """`nn.MultiheadAttention` with identity projections, so that it sees the same q, k and v.

    Asked for no weights, it takes another path inside, and another answer comes out.
    """
    layer = torch.nn.MultiheadAttention(2, 1, bias=False, batch_first=True).eval()
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.eye(2).repeat(3, 1))
        layer.out_proj.weight.copy_(torch.eye(2))
        given = (q[None], k[None], v[None])
        output, weights = layer(*given, attn_mask=~visible, need_weights=need_weights)
    if need_weights:
        return Outcome("multihead", _floats(weights), _floats(output))
    return Outcome("multihead-fast", output=_floats(output))


@lru_cache(maxsize=64)
def fills(low: float = -2e9) -> dict[str, tuple[Outcome, ...]]:
    """Key 0 is visible and scores `low`, key 1 is hidden: −∞ against −1e9, per data type.

    With −1e9 a visible score below it loses to the hidden key; float16 cannot hold −1e9 at all.

    >>> {way.way: way.weights for way in fills()["float32"]}
    {'-inf': (1.0, 0.0), '-1e9': (0.0, 1.0)}
    """
    return {
        str(dtype).removeprefix("torch."): tuple(_fill(fill, low, dtype) for fill in FILLS)
        for dtype in (torch.float32, torch.float16)
    }


FILLS = {"-inf": -torch.inf, "-1e9": FILL}


def _fill(name: str, low: float, dtype) -> Outcome:
    # float16 holds no score below −65504: there the visible one is as low as it can be.
    score = max(low, torch.finfo(dtype).min)
    scores = torch.tensor([[score, 0.0]], dtype=dtype)
    hidden = torch.tensor([[False, True]])
    try:
        filled = scores.masked_fill(hidden, FILLS[name])
    except RuntimeError as problem:
        return Outcome(name, refused=str(problem).splitlines()[0])
    return Outcome(name, _floats(filled.float().softmax(-1)), (float(filled[0, 1]),))


def aligned(S: int, past: int) -> dict[str, torch.Tensor]:
    """S new queries after `past` keys: what each may see, (S, past + S), by three rules.

    "top-left": `is_causal=True` of SDPA with the whole cache, measured from its output.
    "bottom-right": the last query sees all. "past": j ≤ i + past, the right one; equal to
    bottom-right here.

    >>> {rule: seen.sum(-1).tolist() for rule, seen in aligned(1, 3).items()}
    {'top-left': [1], 'bottom-right': [4], 'past': [4]}
    """
    T = past + S
    # Equal scores and V = identity: the output is the weights, so visible keys are where it is > 0.
    q, k, v = torch.zeros(1, 1, S, T), torch.zeros(1, 1, T, T), torch.eye(T)[None, None]
    by_sdpa = F.scaled_dot_product_attention(q, k, v, is_causal=True)[0, 0] > 0
    rows, columns = torch.zeros(S, T), torch.zeros(T, T)
    corner = attend(rows, columns, torch.eye(T), causal="bottom-right")["mask"]
    new, old = torch.zeros(1, 1, S, T), torch.zeros(1, 1, past, T)
    cached = attend(new, new, new, causal=True, past_key=old, past_value=old)["mask"]
    return {"top-left": by_sdpa, "bottom-right": corner, "past": cached}


def script(name: str) -> str:
    """The code of an experiment, "blind" or "aligned", as it runs here.

    >>> "is_causal=True" in script("aligned")
    True
    """
    parts = {"blind": (blind, _sdpa, _multihead), "aligned": (aligned,)}[name]
    return "\n\n".join(inspect.getsource(inspect.unwrap(part)) for part in parts)
