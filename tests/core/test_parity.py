"""The engine against PyTorch: fused SDPA, and nn.MultiheadAttention head by head."""

import math
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import core
from core import longmap, masks

B, HEADS, S, T, D_K, D_V = 2, 4, 5, 7, 8, 6
TOLERANCE = {
    torch.float64: {"rtol": 1e-12, "atol": 1e-12},
    torch.float32: {"rtol": 1e-5, "atol": 1e-6},
    # Ours keeps weights in the half type, as eager code does; SDPA rounds only the output.
    torch.bfloat16: {"rtol": 2**-6, "atol": 2**-6},
    torch.float16: {"rtol": 2**-9, "atol": 2**-9},
}


def close(found, wanted):
    torch.testing.assert_close(found, wanted, **TOLERANCE[wanted.dtype])


def draw(*shape, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def qkv(dtype=torch.float32, g=HEADS, S=S, T=T):
    return (
        draw(B, HEADS, S, D_K, seed=1, dtype=dtype),
        draw(B, g, T, D_K, seed=2, dtype=dtype),
        draw(B, g, T, D_V, seed=3, dtype=dtype),
    )


def boolean(*shape, seed=4):
    return draw(*shape, seed=seed) > 0


# --- F.scaled_dot_product_attention ---------------------------------------------------------------

SDPA = {
    "plain": {},
    "causal": {"is_causal": True},
    "scale": {"scale": 0.7},
    "scale 0": {"scale": 0.0},
    "scale below 0": {"scale": -0.3},
    "bool mask (S, T)": {"attn_mask": boolean(S, T)},
    "bool mask (B, 1, S, T)": {"attn_mask": boolean(B, 1, S, T)},
    "bool mask (1, h, S, T)": {"attn_mask": boolean(1, HEADS, S, T)},
    "bool mask (B, h, S, T)": {"attn_mask": boolean(B, HEADS, S, T)},
    "padding (B, 1, 1, T)": {"attn_mask": masks.padding([3, 7], T)},
    "float mask": {"attn_mask": draw(B, 1, S, T, seed=5)},
    "float mask with −∞": {"attn_mask": draw(S, T, seed=6).masked_fill(~boolean(S, T), -math.inf)},
}


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("name", SDPA)
def test_sdpa(name, dtype):
    q, k, v = qkv(dtype)
    about = dict(SDPA[name])
    mask = about.get("attn_mask")
    if mask is not None and mask.is_floating_point():
        mask = about["attn_mask"] = mask.to(dtype)
    trace = core.attend(
        q, k, v, mask=mask, causal=about.get("is_causal", False), scale=about.get("scale")
    )
    close(trace["output"], F.scaled_dot_product_attention(q, k, v, **about))


@pytest.mark.parametrize("g", [1, 2, 4])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_sdpa_grouped(g, dtype):
    q, k, v = qkv(dtype, g=g)
    wanted = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    close(core.attend(q, k, v, causal=True)["output"], wanted)


@pytest.mark.parametrize(("queries", "keys"), [(3, 7), (7, 3), (1, 5), (4, 4)])
def test_causal_without_a_past_is_top_left(queries, keys):
    q, k, v = qkv(S=queries, T=keys)
    wanted = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    close(core.attend(q, k, v, causal=True)["output"], wanted)


@pytest.mark.parametrize("side", [sys.maxsize, 10**30])
def test_a_window_wider_than_any_tensor_is_open(side):
    q, k, v = draw(5, 4), draw(7, 4, seed=1), draw(7, 2, seed=2)
    for window, same in (((1, side), (1, -1)), ((side, 1), (-1, 1)), ((side, side), None)):
        found, wanted = (core.attend(q, k, v, window=w) for w in (window, same))
        assert torch.equal(found["weights"], wanted["weights"])
        assert str(side) not in found.source()
        whole = longmap.attention_map(q, k, window=window).window(0, 0, 5, 7)
        torch.testing.assert_close(whole, wanted["weights"])


def test_blind_rows_are_zero_as_in_sdpa():
    q, k, v = qkv()
    mask = boolean(S, T)
    mask[2] = False
    trace = core.attend(q, k, v, mask=mask)
    close(trace["output"], F.scaled_dot_product_attention(q, k, v, attn_mask=mask))
    assert trace["weights"][:, :, 2].eq(0).all()
    assert trace["output"][:, :, 2].eq(0).all()
    assert [n.id for n in trace.notices] == ["blind"]
    assert trace.notices[0].facts == {"count": 8, "rows": 40, "index": (0, 0, 2)}


def test_two_dimensions_are_one_head():
    q, k, v = qkv()
    close(core.attend(q[0, 0], k[0, 0], v[0, 0])["output"], core.attend(q, k, v)["output"][0, 0])


@pytest.mark.parametrize("kind", ["numpy", "lists"])
def test_arrays_and_lists_are_taken(kind):
    q, k, v = qkv()
    turn = torch.Tensor.numpy if kind == "numpy" else torch.Tensor.tolist
    mask = boolean(S, T)
    trace = core.attend(turn(q), turn(k), turn(v), mask=turn(mask))
    assert torch.equal(trace["output"], core.attend(q, k, v, mask=mask)["output"])
    backwards = np.ascontiguousarray(q.numpy()[:, :, ::-1])[:, :, ::-1]  # strides below 0
    assert torch.equal(core.attend(backwards, k, v)["Q"], q)


# --- a past ---------------------------------------------------------------


def test_a_past_continues_the_whole():
    q, k, v = qkv(S=T, g=2)
    whole = core.attend(q, k, v, causal=True)
    for cut in (1, 4, 6):
        part = core.attend(
            q[:, :, cut:], k[:, :, cut:], v[:, :, cut:], causal=True,
            past_key=k[:, :, :cut], past_value=v[:, :, :cut],
        )  # fmt: skip
        assert torch.equal(part["K"], k)
        assert torch.equal(part["V"], v)
        close(part["output"], whole["output"][:, :, cut:])
        close(part["weights"], whole["weights"][:, :, cut:])


def test_a_past_of_length_0_is_none():
    q, k, v = qkv()
    part = core.attend(
        q, k, v, causal=True, past_key=k[:, :, :0], past_value=v[:, :, :0], window=(2, -1)
    )
    assert torch.equal(part["output"], core.attend(q, k, v, causal=True, window=(2, -1))["output"])


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("batch", [False, True])
def test_projected_attention_continues_a_past(heads, batch):
    X = draw(2, 5, 8) if batch else draw(5, 8)
    W = [draw(8, 8, seed=n) for n in range(4)]
    whole = core.self_attention(X, *W, heads=heads, causal=True)
    symbols = ("K_heads", "V_heads") if heads > 1 else ("K", "V")
    key, value = (whole[symbol][..., :3, :] for symbol in symbols)
    part = core.self_attention(
        X[..., 3:, :], *W, heads=heads, causal=True, past_key=key, past_value=value
    )
    close(part["K_all"], whole[symbols[0]])
    close(part["projected"], whole["projected"][..., 3:, :])


def test_cross_attention_continues_a_past():
    Y, X = draw(3, 6), draw(5, 6, seed=1)
    W = [draw(6, 4, seed=n) for n in (2, 3, 4)]
    whole = core.cross_attention(Y, X, *W, heads=2)
    part = core.cross_attention(
        Y, X[3:], *W, heads=2,
        past_key=whole["K_heads"][:, :3], past_value=whole["V_heads"][:, :3],
    )  # fmt: skip
    close(part["merged"], whole["merged"])


# --- nn.MultiheadAttention ---------------------------------------------------------------


def multihead(E=12, h=3, kdim=None, vdim=None):
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(
        E, h, bias=False, kdim=kdim, vdim=vdim, batch_first=True, dtype=torch.float64
    ).eval()
    return layer.requires_grad_(False)


def projections(layer):
    """W_Q, W_K, W_V, W_O as the engine multiplies them: from the right."""
    if layer.in_proj_weight is not None:
        parts = layer.in_proj_weight.chunk(3)
    else:
        parts = (layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight)
    return [W.T for W in (*parts, layer.out_proj.weight)]


def both(layer, trace, *qkv, **masked):
    """Compare the output, and the weights of every head."""
    output, weights = layer(*qkv, average_attn_weights=False, **masked)
    close(trace["weights"], weights)
    close(trace["projected"], output)


def test_multihead_self():
    layer, X = multihead(), draw(2, 5, 12, dtype=torch.float64)
    both(layer, core.self_attention(X, *projections(layer), heads=3), X, X, X)
    x = X[0]
    both(layer, core.self_attention(x, *projections(layer), heads=3), x, x, x)


def test_multihead_with_both_masks():
    layer, X = multihead(), draw(2, 5, 12, dtype=torch.float64)
    hidden = torch.tensor([[False] * 5, [False, False, False, True, True]])
    future = torch.ones(5, 5, dtype=torch.bool).triu(1)
    padding = masks.from_multihead(hidden)[:, None, None]
    trace = core.self_attention(
        X, *projections(layer), heads=3, mask=padding & masks.from_multihead(future)
    )
    both(layer, trace, X, X, X, key_padding_mask=hidden, attn_mask=future)
    causal = core.self_attention(X, *projections(layer), heads=3, mask=padding, causal=True)
    assert torch.equal(causal["weights"], trace["weights"])


def test_multihead_with_a_mask_per_sample_and_head():
    layer, X = multihead(), draw(2, 5, 12, dtype=torch.float64)
    hidden = boolean(2 * 3, 5, 5) & ~torch.eye(5, dtype=torch.bool)
    ours = masks.from_multihead(hidden).unflatten(0, (2, 3))
    trace = core.self_attention(X, *projections(layer), heads=3, mask=ours)
    both(layer, trace, X, X, X, attn_mask=hidden)


def test_multihead_with_a_float_mask():
    layer, X = multihead(), draw(2, 5, 12, dtype=torch.float64)
    added = draw(5, 5, seed=8, dtype=torch.float64)
    trace = core.self_attention(X, *projections(layer), heads=3, mask=added)
    both(layer, trace, X, X, X, attn_mask=added)


def test_multihead_cross_of_other_widths():
    layer = multihead(kdim=10, vdim=10)
    Y, X = draw(2, 4, 12, dtype=torch.float64), draw(2, 6, 10, seed=1, dtype=torch.float64)
    both(layer, core.cross_attention(Y, X, *projections(layer), heads=3), Y, X, X)


def test_multihead_gives_nan_where_we_give_zero():
    layer, X = multihead(), draw(1, 4, 12, dtype=torch.float64)
    hidden = torch.zeros(4, 4, dtype=torch.bool)
    hidden[1] = True
    trace = core.self_attention(X, *projections(layer), heads=3, mask=masks.from_multihead(hidden))
    output, weights = layer(X, X, X, attn_mask=hidden, average_attn_weights=False)
    seen = [0, 2, 3]
    close(trace["weights"][:, :, seen], weights[:, :, seen])
    close(trace["projected"][:, seen], output[:, seen])
    assert trace["weights"][:, :, 1].eq(0).all()
    assert trace["projected"][:, 1].eq(0).all()
