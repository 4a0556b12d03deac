"""Small traces of every kind, for tests of what must hold for all of them.

A test that takes `example` runs once per trace; one that takes `examples` gets all by name.
"""

import math
import warnings

import pytest
import torch

import core
from core import AttentionConfig, masks

INF = math.inf


def draw(*shape, seed=0, dtype=torch.float32):
    """Independent N(0, 1) entries, the same in every type up to rounding."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def qkv(S=4, T=5, h=4, g=4, dtype=torch.float32):
    shapes = ((2, h, S, 6), (2, g, T, 6), (2, g, T, 3))
    return [draw(*shape, seed=seed, dtype=dtype) for seed, shape in enumerate(shapes)]


def seen(*shape):
    return draw(*shape, seed=9) > -0.3


def weights(H=8, inner=8, dtype=torch.float32):
    return [draw(H, inner, seed=seed, dtype=dtype) / 3 for seed in (11, 12, 13)]


def configured(**fields):
    return lambda: core.run(AttentionConfig(**fields), device="cpu")


def float_mask():
    added = draw(2, 1, 4, 5, seed=5).masked_fill(~seen(2, 1, 4, 5), -INF)
    return core.attend(*qkv(), mask=added, causal=True)


def with_past():
    q, k, v = qkv(g=2)
    past = draw(2, 2, 3, 6, seed=6), draw(2, 2, 3, 3, seed=7)
    limits = {"causal": True, "window": (4, -1), "softcap": 2.5}
    return core.attend(q, k, v, past_key=past[0], past_value=past[1], **limits)


def projected_past():
    past = draw(2, 2, 3, 2, seed=6), draw(2, 2, 3, 2, seed=7)
    W_Q, W_K, W_V = weights()
    return core.self_attention(
        draw(2, 3, 8), W_Q, W_K[:, :4], W_V[:, :4], draw(8, 5, seed=14), heads=4, kv_heads=2,
        causal=True, past_key=past[0], past_value=past[1],
    )  # fmt: skip


def crossed_past():
    past = draw(2, 2, 6, seed=6), draw(2, 2, 3, seed=7)
    W = draw(8, 12, seed=1), draw(8, 12, seed=2), draw(8, 6, seed=3)
    return core.cross_attention(
        draw(3, 8), draw(4, 8, seed=4), *W, heads=2, past_key=past[0], past_value=past[1]
    )


def other_widths():
    Y, X = draw(2, 3, 5), draw(2, 4, 8, seed=1)
    return core.cross_attention(Y, X, draw(5, 6), draw(8, 6), draw(8, 10), draw(10, 4), heads=2)


def odd_layouts():
    X = draw(8, 2, 4).permute(1, 2, 0)  # transposed
    W_Q, W_K = draw(8, 16, seed=1)[:, ::2], draw(8, 1, seed=2).expand(8, 8)  # gaps, repeats
    W_V = draw(40, seed=3).as_strided((8, 8), (3, 1))  # rows overlap
    return core.self_attention(X, W_Q, W_K, W_V, heads=2, mask=seen(4, 1).expand(4, 4))


def blind(dtype=torch.float32, **limits):
    mask = seen(2, 1, 4, 5)
    mask[:, :, 1] = False
    return core.attend(*qkv(dtype=dtype), mask=mask, **limits)


def cancelling():
    """Products of 1e40 and −1e40, past float32, whose sum is not."""
    q, k, v = qkv(h=1, g=1)
    q[0, 0, 1], k[0, 0, 2] = torch.tensor([1e20] * 6), torch.tensor([1e20, -1e20] * 3)
    return core.attend(q, k, v)


def overflowing(**limits):
    """Scores of ±1e40, past float32, and one row of only −1e40."""
    q, k, v = qkv(h=1, g=1)
    q[0, 0, 1], q[0, 0, 2], k[0] = 1e20, -1e20, 1e20
    return core.attend(q, k, v, **limits)


def overflow_behind_a_float_mask():
    added = torch.zeros(4, 5).masked_fill(torch.eye(4, 5) == 1, -INF)
    return overflowing(mask=added, causal="bottom-right")


def narrow_softmax():
    q, k, v = (x * 300 for x in qkv())
    return core.attend(q, k, v, mask=seen(4, 5), softmax_dtype=torch.float16)


def half(**limits):
    return core.attend(*qkv(dtype=torch.float16, g=2), **limits)


def half_overflowing():
    q, k, v = qkv(dtype=torch.float16)
    return core.attend(q * 200, k * 200, v, causal=True, softmax_dtype="float32")


def not_a_number():
    q, k, v = qkv()
    k[0, 1, 2, 3] = math.nan
    return core.attend(q, k, v, causal=True)


def angles(S, r, first=0):
    """cos and sin (S, r) of rotary positions, each angle once in each half."""
    turns = torch.arange(first, first + S)[:, None] * 100.0 ** (-torch.arange(0, r, 2) / r)
    turns = torch.cat((turns, turns), -1)
    return turns.cos(), turns.sin()


def turned(dtype=torch.float32, **limits):
    """Queries and keys turned in their first four columns, after a past."""
    q, k, v = qkv(T=4, g=2, dtype=dtype)
    past = [draw(2, 2, 3, d, seed=d, dtype=dtype) for d in (6, 3)]
    limits |= {"past_key": past[0], "past_value": past[1], "causal": True}
    return core.attend(q, k, v, rotary=[x.to(dtype) for x in angles(4, 4, first=3)], **limits)


def normed():
    norm = draw(4, seed=20), draw(4, seed=21)
    side_by_side = [x[:, :2].repeat_interleave(2, -1) for x in angles(3, 4)]
    return core.self_attention(
        draw(2, 3, 8), *weights(), heads=2, norm=norm, eps=0.01, rotary=side_by_side,
        pairs="interleaved",
    )  # fmt: skip


SENTENCE = (("the", "cat", "sat"), ("猫", "坐"))

EXAMPLES = {
    "opening example": configured(x="example", d_k=3),
    "heads": configured(S=3, H=8, h=2, B=2, project=True, causal=True, d_v=5),
    "cross, grouped": configured(S=3, T=4, B=2, H=8, h=4, g=2, cross=True, project=True,
                                 lengths=(2, 4), window=(1, -1)),
    "cross, one query": configured(S=1, T=3, H=4, cross=True, h=2),
    "one of everything": configured(S=1, H=1),
    "float64": configured(S=4, H=6, h=3, dtype="float64", softcap=1.5, hidden=((0, 0), (2, 1))),
    "bfloat16": configured(S=4, H=8, h=2, dtype="bfloat16", softmax_dtype="float32"),
    "float16": configured(S=4, H=8, h=2, dtype="float16", scale=0.3, causal=True),
    "rotary": configured(S=3, H=8, h=2, B=2, rotary="interleaved", causal=True, dtype="bfloat16"),
    "sentences": configured(tokens=SENTENCE, H=6, edits=(("X", (0, 1, 2), -3), ("W_K", (5, 1), 7)),
                            scale=-0.5, lengths=(3, 2), causal="bottom-right"),
    "attend": lambda: core.attend(*qkv()),
    "attend, 2 dims": lambda: core.attend(draw(3, 4), draw(5, 4), draw(5, 2), mask=seen(3, 5)),
    "attend, grouped": lambda: core.attend(*qkv(g=2), mask=seen(2, 1, 4, 5), softcap=3.0),
    "attend, mask per head": lambda: core.attend(*qkv(), mask=seen(1, 4, 1, 5), window=(2, 1)),
    "float mask": float_mask,
    "past": with_past,
    "past of a projection": projected_past,
    "past of a source": crossed_past,
    "other widths": other_widths,
    "odd layouts": odd_layouts,
    "blind": blind,
    "blind in float16": lambda: blind(torch.float16),
    "blind, wide softmax": lambda: blind(torch.bfloat16, softmax_dtype=torch.float64),
    "scale 0": lambda: core.attend(*qkv(), scale=0.0),
    "cancelling": cancelling,
    "overflowing": overflowing,
    "overflowing, scale 0": lambda: overflowing(scale=0.0),
    "overflowing, softcap": lambda: overflowing(softcap=5.0, causal=True),
    "overflow behind a float mask": overflow_behind_a_float_mask,
    "narrow softmax": narrow_softmax,
    "half, grouped": lambda: half(causal=True),
    "half, large scale": lambda: half(scale=3.0),
    "half, overflowing": half_overflowing,
    "not a number": not_a_number,
    "turned": turned,
    "turned in float16": lambda: turned(torch.float16),
    "normed and turned": normed,
    "padding": lambda: core.attend(*qkv(), mask=masks.padding([0, 4], 5)),
}  # fmt: skip


@pytest.fixture(params=EXAMPLES)
def example(request) -> core.Trace:
    """One small trace, each kind in turn."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return EXAMPLES[request.param]()


@pytest.fixture
def remake(request):
    """What makes the trace of `example` anew."""
    return EXAMPLES[request.node.callspec.params["example"]]


@pytest.fixture(scope="session")
def examples() -> dict[str, core.Trace]:
    """All small traces by name."""
    return {name: make() for name, make in EXAMPLES.items()}
