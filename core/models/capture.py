"""Watch a transformers model: each of its attention calls, as it happens, with all that enters it.

transformers lets an attention function be registered by name. Ours notes what it is handed, then
hands the computation on to the function the model itself uses, so that the model's result is the
one it gives unwatched, bit for bit. Models that do not use this interface give no calls.

>>> with watch(model) as calls:  # doctest: +SKIP
...     model(**tokenizer("the cat", return_tensors="pt"))
>>> calls[0].trace()["weights"].shape  # doctest: +SKIP
torch.Size([1, 12, 4, 4])
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import torch

from core.attention import attend
from core.masks import causal as causal_mask
from core.models.projections import Projections, Taps
from core.trace import Trace

NAME = "qkv_microscope"  # of our function in transformers' registries
FORWARD = threading.RLock()  # one watched run at a time: the implementation is set on the model

_watching: ContextVar[Watch | None] = ContextVar("watching", default=None)


@dataclass(frozen=True)
class Call:
    """One attention call of a model: what it was given, and the weights the model made of it.

    `q` (B, h, S, d_k), `k` (B, g, T, d_k), `v` (B, g, T, d_v). `seen`: True = may attend, or None.
    `bias`: a float tensor that the model adds to the scores, or None. `kind`: "self", or in a model
    of two halves "encoder", "decoder" or "cross". `layer`: its number within that kind, from 0.
    `own`: the model's own weights, None where it does not tell them. `inputs`: its projections,
    None where they were not found.
    """

    name: str
    kind: str
    layer: int
    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    seen: torch.Tensor | None
    bias: torch.Tensor | None
    causal: bool
    scale: float
    softcap: float | None
    window: int | None
    is_causal: bool
    own: torch.Tensor | None = field(repr=False)
    inputs: Projections | None = field(repr=False, default=None)

    @property
    def heads(self) -> int:
        return self.q.shape[1]

    @property
    def kv_heads(self) -> int:
        return self.k.shape[1]

    def limits(self, lead: tuple[int, ...] | None = None) -> dict:
        """Scale, cap and masks as `core.attend` takes them; `lead` picks (sample, head)."""
        given = {"scale": self.scale, "softcap": self.softcap, "causal": self.causal}
        if self.q.dtype in (torch.float16, torch.bfloat16):
            given["softmax_dtype"] = torch.float32
        mask = self.bias if self.bias is not None else self.seen
        if mask is not None and lead is not None:
            mask = mask[tuple(min(i, n - 1) for i, n in zip(lead, mask.shape, strict=False))]
            mask = mask.expand(self.q.shape[2], -1)
        return given | {"mask": mask}

    def visible(self, sample: int = 0) -> torch.Tensor:
        """What the queries of a sample may see, (1 or h, S, T), True = may attend."""
        S, T = self.q.shape[2], self.k.shape[2]
        seen = torch.ones(1, S, T, dtype=torch.bool, device=self.q.device)
        if self.causal:
            seen = seen & causal_mask(S, T, device=self.q.device)
        for mask in (self.seen, None if self.bias is None else self.bias > -1e30):
            if mask is not None:
                seen = seen & mask[min(sample, len(mask) - 1)]
        return seen

    def trace(self) -> Trace:
        """All heads and samples of this call, from Q, K, V to the output."""
        return attend(self.q, self.k, self.v, **self.limits())

    def head(self, head: int, sample: int = 0) -> Trace:
        """One head of one sample, (S, d_k) and (T, d_k), from Q, K, V to the output."""
        g = head // (self.heads // self.kv_heads)
        at = (self.q[sample, head], self.k[sample, g], self.v[sample, g])
        return attend(*(x.contiguous() for x in at), **self.limits((sample, head)))

    def head_from_inputs(self, head: int, sample: int = 0) -> Trace | None:
        """One head from the sequence as it entered and this head's columns of W_Q, W_K and W_V.

        A bias of the projection is the last row of W, met by a column of ones in X. Queries and
        keys that are normalised or turned by their position in between are so here too, as steps
        of their own. None where the projections were not found, or where what they give is not
        what the model compared.
        """
        if self.inputs is None:
            return None
        return self.inputs.head(self, head, sample)

    @property
    def deviation(self) -> float | None:
        """The largest difference between our weights and the model's own."""
        if self.own is None:
            return None
        return float((self.trace()["weights"] - self.own).abs().max())


class Watch:
    """What a watched run has given so far."""

    def __init__(self, model):
        self.before = model.config._attn_implementation
        self.names = {id(module): name for name, module in model.named_modules()}
        self.encodes = bool(getattr(model.config, "is_encoder_decoder", False))
        self.taps = Taps(model)
        self.calls: list[Call] = []
        self.counts: dict[str, int] = {}

    def note(self, module, q, k, v, mask, weights, facts) -> None:
        """Keep one call."""
        name = self.names.get(id(module), type(module).__name__)
        inputs = self.taps.found(module, q, k, v)
        kind = self._kind(name, inputs, q, k)
        layer = self.counts[kind] = self.counts.get(kind, -1) + 1
        scale = facts.get("scaling")
        scale = q.shape[-1] ** -0.5 if scale is None else float(scale)
        is_causal = facts.get("is_causal")
        is_causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
        # sdpa is given no mask where its own causal one will do.
        unwritten = self.before == "sdpa" and mask is None and is_causal and q.shape[2] > 1
        if unwritten:
            mask = causal_mask(q.shape[2], k.shape[2], device=q.device)[None, None]
        seen, bias, causal = limits(mask, facts.get("position_bias"), q, k)
        window = facts.get("sliding_window")
        self.calls.append(
            Call(
                name=name,
                kind=kind,
                layer=layer,
                q=q.detach().clone(),
                k=k.detach().clone(),
                v=v.detach().clone(),
                seen=seen,
                bias=bias,
                causal=causal,
                scale=scale,
                softcap=facts.get("softcap"),
                window=window if isinstance(window, int) else None,
                is_causal=bool(is_causal),
                own=None if weights is None else weights.detach(),
                inputs=inputs,
            )
        )

    def _kind(self, name, inputs, q, k) -> str:
        """Whose attention it is, told by where queries and keys come from, then by the path."""
        crossed = inputs.crossed if inputs else q.shape[2] != k.shape[2]
        if crossed:
            return "cross"
        path = name.lower().split(".")
        if self.encodes:
            return "decoder" if any("decoder" in part for part in path) else "encoder"
        return "self"


def limits(mask, position_bias, q, k):
    """A model's mask and position bias as (seen, bias, causal) for `core.attend`.

    A mask of 0 and very low numbers hides pairs and becomes boolean. Where it hides all keys from
    a query (padding), the model's softmax shares its weight evenly; there the numbers are added
    as they are, so that the weights are the model's. Raises nothing.
    """
    S, T = q.shape[2], k.shape[2]
    bias = position_bias
    if bias is not None:
        bias = bias[..., :T].detach()
        bias = None if bool((bias == 0).all()) else bias
    seen = None
    if mask is not None:
        mask = mask[..., :T].detach()
        if mask.dtype == torch.bool:
            seen = mask
        else:
            low = torch.finfo(mask.dtype).min / 2
            hidden = mask <= low
            blind = bool(hidden.all(-1).any())
            if blind or bool(((mask != 0) & ~hidden).any()):
                bias = mask if bias is None else bias + mask
            else:
                seen = ~hidden
    if seen is not None and bool(seen.all()):
        seen = None
    if seen is None or bias is None:
        return (_small(seen), None, False) if bias is None else (None, bias.clone(), False)
    if bool((seen == causal_mask(S, T, device=seen.device)).all()):
        return None, bias.clone(), True
    return None, bias.masked_fill(~seen, -torch.inf), False


def _small(seen):
    """A mask without its repetitions over heads or samples, in memory of its own."""
    if seen is None:
        return None
    for axis in range(2):
        first = seen.narrow(axis, 0, 1)
        seen = first if bool((seen == first).all()) else seen
    return seen.clone()


# --- transformers' interface ------------------------------------------------------------------


def attention(module, query, key, value, attention_mask, **facts):
    """The registered function: note the call if someone watches, then compute as the model does."""
    watch = _watching.get()
    if watch is not None and watch.before == "sdpa":
        from transformers.integrations.sdpa_attention import sdpa_attention_forward as compute
    else:
        compute = _own(module)
    output, weights = compute(module, query, key, value, attention_mask, **facts)
    if watch is not None:
        watch.note(module, query, key, value, attention_mask, weights, facts)
    return output, weights


def _own(module):
    """The function that the model's own file defines for eager attention, else PyTorch's."""
    for kind in type(module).__mro__:
        own = getattr(sys.modules.get(kind.__module__), "eager_attention_forward", None)
        if own is not None:
            return own
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    return sdpa_attention_forward


def mask(*sizes, **facts):
    """The registered mask function: masks as the model would get them unwatched."""
    from transformers.masking_utils import eager_mask, sdpa_mask

    watch = _watching.get()
    plain = watch is not None and watch.before == "sdpa"
    return (sdpa_mask if plain else eager_mask)(*sizes, **facts)


def _register() -> None:
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, mask)


@contextmanager
def watch(model) -> Iterator[list[Call]]:
    """While open, each attention call of the model (a PreTrainedModel in eval mode) is noted.

    The model computes what it computes unwatched, with its `attn_implementation` of "eager" or
    "sdpa"; any other is taken for "eager". Only "eager" tells its own weights. A model that does
    not hand its attention to transformers' interface leaves the list empty.
    """
    with FORWARD:
        _register()
        # No attribute of an attention call is lost: the implementation is read at each call.
        able = model._can_set_attn_implementation()
        watching = Watch(model)
        if able:
            model.set_attn_implementation(NAME)
        token = _watching.set(watching)
        try:
            with watching.taps:
                yield watching.calls
        finally:
            _watching.reset(token)
            if able:
                model.set_attn_implementation(watching.before)
