"""The sequence as it enters an attention module, and the matrices that make Q, K and V of it.

They are found by the names transformers gives them, and believed only where X·W + b, normalised
and turned by position in one of the ways known here, is what the module compared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from core import ops
from core.attention import cross_attention, self_attention

APART = (
    ("q_proj", "k_proj", "v_proj"),
    ("query", "key", "value"),
    ("q", "k", "v"),
    ("q_lin", "k_lin", "v_lin"),
    ("query_proj", "key_proj", "value_proj"),
)
TOGETHER = ("c_attn", "qkv_proj", "query_key_value", "qkv", "Wqkv", "in_proj")
CLOSE = 1e-4  # X·W + b may differ by so much of the largest entry of Q


@dataclass(frozen=True)
class Linear:
    """y = x·W + b: `weight` (in, out), `bias` (out) or None. Views of the model's own memory."""

    weight: torch.Tensor
    bias: torch.Tensor | None

    def __call__(self, x):
        y = x @ self.weight
        return y if self.bias is None else y + self.bias

    def columns(self, part) -> Linear:
        """Some of the outputs only."""
        return Linear(self.weight[:, part], None if self.bias is None else self.bias[part])

    def with_ones(self) -> torch.Tensor:
        """W with b as its last row, (in + 1, out); a row of zeros where there is no bias."""
        bias = self.weight.new_zeros(self.weight.shape[1]) if self.bias is None else self.bias
        return torch.cat([self.weight, bias[None]]).contiguous()


@dataclass(frozen=True)
class Between:
    """What a module may do to Q and K after X·W: `turn` = (cos, sin), `norms` = its two modules."""

    turn: tuple[torch.Tensor, torch.Tensor] | None = None
    norms: tuple[torch.nn.Module, torch.nn.Module] | None = None

    def ways(self, sample: int):
        """Each way in which Q and K may have been made, as `core.self_attention` takes it."""
        for norm in self._norms():
            yield norm
            for turn in self._turns(sample):
                yield norm | turn

    def _norms(self):
        yield {}
        if self.norms is None:
            return
        q, k = (norm.weight.detach() for norm in self.norms)
        eps = getattr(self.norms[0], "eps", getattr(self.norms[0], "variance_epsilon", 1e-6))
        yield {"norm": (q, k), "eps": eps}
        yield {"norm": (1 + q, 1 + k), "eps": eps}  # Gemma keeps the gain's distance from 1

    def _turns(self, sample):
        if self.turn is None:
            return
        cos, sin = (x[min(sample, len(x) - 1)] for x in self.turn)
        yield {"rotary": (cos, sin), "pairs": "halves"}
        yield {"rotary": (cos, sin), "pairs": "interleaved"}
        # Some hand over each angle twice, half after half, and lay them side by side later.
        once = (x[:, : x.shape[1] // 2].repeat_interleave(2, 1) for x in (cos, sin))
        yield {"rotary": tuple(once), "pairs": "interleaved"}


def after(x, way: dict, at: int):
    """X·W + b of one head (S, d_k), normalised and turned; `at` is 0 for queries, 1 for keys."""
    if "norm" in way:
        x = ops.Rms(way["eps"]).compute(x, way["norm"][at])
    if "rotary" not in way:
        return x
    width = way["rotary"][0].shape[-1]
    return ops.Rotate(way["pairs"], width if width < x.shape[-1] else 0).compute(x, *way["rotary"])


@dataclass(frozen=True)
class Projections:
    """`asking` (B, S, H) makes Q; `asked` (B, T, H) makes K and V. In self-attention one tensor."""

    asking: torch.Tensor
    asked: torch.Tensor
    query: Linear
    key: Linear
    value: Linear
    crossed: bool
    between: Between = Between()

    @property
    def biased(self) -> bool:
        return any(part.bias is not None for part in (self.query, self.key, self.value))

    def head(self, call, head: int, sample: int):
        """The trace of one head from X on, or None where X·W + b is not what was compared."""
        g = head // (call.heads // call.kv_heads)
        places = (
            (self.query, call.q, head),
            (self.key, call.k, g),
            (self.value, call.v, g),
        )
        parts = [
            part.columns(slice(i * made.shape[-1], (i + 1) * made.shape[-1]))
            for part, made, i in places
        ]
        X, Y = self.asked[min(sample, len(self.asked) - 1)], self.asking[sample]
        made = [x[sample, i] for _whole, x, i in places]
        way = self._way(parts, (Y, X, X), made, sample)
        if way is None:
            return None
        if self.biased:
            matrices = [part.with_ones() for part in parts]
            X, Y = _ones(X), _ones(Y)
        else:
            matrices = [part.weight.contiguous() for part in parts]
        limits = call.limits((sample, head)) | way
        if self.crossed:
            return cross_attention(Y, X, *matrices, **limits)
        return self_attention(X, *matrices, **limits)

    def _way(self, parts, sources, made, sample) -> dict | None:
        """What stands between X·W + b and the Q, K and V that were made; None for none known."""
        q, k, v = (part(source) for part, source in zip(parts, sources, strict=True))
        if not alike(v, made[2]):
            return None
        for way in self.between.ways(sample):
            fits = fitting(way, len(q), len(k), q.shape[-1])
            if fits and alike(after(q, way, 0), made[0]) and alike(after(k, way, 1), made[1]):
                return way
        return None


def fitting(way: dict, S: int, T: int, d_k: int) -> bool:
    """Whether gains and angles have the sizes of these queries and keys."""
    gains = all(gain.shape == (d_k,) for gain in way.get("norm", ()))
    angles = all(len(x) == S == T and x.shape[1] <= d_k for x in way.get("rotary", ()))
    return gains and angles


def _ones(x):
    """A column of ones after the last."""
    return torch.cat([x, x.new_ones(*x.shape[:-1], 1)], -1)


def alike(a, b) -> bool:
    """Equal but for rounding.

    >>> alike(torch.ones(2), torch.ones(2) + 1e-6), alike(torch.ones(2), torch.zeros(2))
    (True, False)
    """
    if a.shape != b.shape:
        return False
    return float((a - b).abs().max()) <= CLOSE * max(float(b.abs().max()), 1e-6)


class Taps:
    """Notes what enters the projections of a model while it is open."""

    def __init__(self, model):
        names = {*TOGETHER, "q_attn", *(name for group in APART for name in group)}
        self._modules = [
            module for path, module in model.named_modules()
            if path.rpartition(".")[2] in names and _linear(module) is not None
        ]  # fmt: skip
        holders = {id(child) for child in self._modules}
        self._parents = [
            module for module in model.modules()
            if any(id(child) in holders for child in module.children())
        ]  # fmt: skip
        self._entered: dict[int, torch.Tensor] = {}
        self._turned: dict[int, tuple] = {}
        self._hooks: list = []

    def __enter__(self):
        self._hooks = [module.register_forward_hook(self._note) for module in self._modules]
        self._hooks += [
            module.register_forward_pre_hook(self._note_angles, with_kwargs=True)
            for module in self._parents
        ]
        return self

    def __exit__(self, *problem):
        for hook in self._hooks:
            hook.remove()
        self._entered.clear()
        self._turned.clear()

    def _note(self, module, given, _made):
        if given:
            self._entered[id(module)] = given[0].detach()

    def _note_angles(self, module, given, named):
        """(cos, sin), each (B or 1, S, r), as the models that turn Q and K hand them over."""
        pair = named.get("position_embeddings")
        pair = pair if isinstance(pair, tuple | list) else ()
        if len(pair) == 2 and all(getattr(x, "ndim", 0) == 3 for x in pair):
            self._turned[id(module)] = tuple(x.detach() for x in pair)

    def _between(self, module, inside) -> Between:
        norms = tuple(inside.get(name) for name in ("q_norm", "k_norm"))
        whole = all(isinstance(getattr(x, "weight", None), torch.Tensor) for x in norms)
        return Between(self._turned.get(id(module)), norms if whole else None)

    def found(self, module, q, k, v) -> Projections | None:
        """The projections of an attention module that was just called."""
        inside = {path: child for path, child in module.named_modules() if "." not in path}
        apart = next((group for group in APART if all(name in inside for name in group)), None)
        between = self._between(module, inside)
        if apart:
            return self._apart([inside[name] for name in apart], between)
        together = next((inside[name] for name in TOGETHER if name in inside), None)
        if together is not None and id(together) in self._entered:
            found = self._together(together, inside.get("q_attn"), q, k, v)
            return found and replace(found, between=between)
        return None

    def _apart(self, modules, between) -> Projections | None:
        entered = [self._entered.get(id(module)) for module in modules]
        parts = [_linear(module) for module in modules]
        if any(x is None or x.ndim != 3 for x in entered) or None in parts:
            return None
        crossed = _address(entered[0]) != _address(entered[1])
        return Projections(entered[0], entered[1], *parts, crossed, between)

    def _together(self, module, asker, q, k, v) -> Projections | None:
        """One matrix for all: side by side, or turn by turn for each head."""
        whole, x = _linear(module), self._entered[id(module)]
        if x.ndim != 3 or whole is None:
            return None
        sizes = [made.shape[1] * made.shape[-1] for made in (q, k, v)]
        if asker is not None and id(asker) in self._entered:
            if sum(sizes[1:]) != whole.weight.shape[1]:
                return None
            key, value = (whole.columns(part) for part in _blocks(sizes[1:]))
            return Projections(self._entered[id(asker)], x, _linear(asker), key, value, True)
        if sum(sizes) != whole.weight.shape[1]:
            return None
        for parts in (_blocks(sizes), _turns(q.shape[1], sizes)):
            if parts is None:
                continue
            query, key, value = (whole.columns(part) for part in parts)
            if alike(_split(value(x), v), v):
                return Projections(x, x, query, key, value, False)
        return None


def _split(flat, like):
    """(B, S, h·d) as (B, h, S, d)."""
    return flat.unflatten(-1, (like.shape[1], like.shape[-1])).transpose(1, 2)


def _blocks(sizes):
    """The columns of Q, then those of K, then those of V."""
    starts = [sum(sizes[:place]) for place in range(len(sizes))]
    return [slice(start, start + size) for start, size in zip(starts, sizes, strict=True)]


def _turns(heads, sizes):
    """Per head its columns of Q, of K and of V; only where all heads have their own."""
    if len(set(sizes)) != 1:
        return None
    place = torch.arange(sum(sizes)).reshape(heads, 3, -1)
    return [place[:, i].reshape(-1) for i in range(3)]


def _address(x):
    return x.untyped_storage().data_ptr(), x.storage_offset()


def _linear(module) -> Linear | None:
    """A layer that multiplies by a matrix, as one; None for any other module."""
    weight, bias = getattr(module, "weight", None), getattr(module, "bias", None)
    kind = type(module).__name__
    if kind == "Linear":
        weight = weight.T
    elif kind != "Conv1D":  # GPT-2's: the weight lies as (in, out)
        return None
    if not weight.is_floating_point():
        return None
    return Linear(weight.detach(), None if bias is None else bias.detach())
