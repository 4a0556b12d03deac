"""What the masks page claims, pinned: each verdict is torch's own doing."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

import core
from core import AttentionConfig
from core.experiments import masks


@settings(max_examples=40, deadline=None)
@given(
    S=st.integers(1, 6),
    causal=st.booleans(),
    window=st.one_of(st.none(), st.tuples(st.integers(-1, 3), st.integers(-1, 3))),
    lengths=st.one_of(st.none(), st.lists(st.integers(0, 6), min_size=2, max_size=2)),
    pairs=st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=5),
)
def test_what_is_drawn_is_what_the_engine_masks(S, causal, window, lengths, pairs):
    hidden = tuple(sorted((i, j) for i, j in pairs if i < S and j < S))
    lengths = lengths and tuple(min(n, S) for n in lengths)
    config = AttentionConfig(
        S=S, H=4, causal=causal, window=window, hidden=hidden, lengths=lengths,
        B=2 if lengths else None,
    )  # fmt: skip
    trace = core.run(config)
    for sample in range(config.B or 1):
        seen = masks.parts(config, sample)["all"]
        weights = trace["weights"] if config.B is None else trace["weights"][sample]
        assert torch.equal(weights > 0, seen)


def test_both_polarities_and_the_float_form_give_the_same_attention():
    visible = masks.parts(AttentionConfig(S=4, causal=True, window=(1, 0)))["all"]
    forms = masks.polarities(visible)
    x = torch.randn(4, 2, generator=torch.Generator().manual_seed(1))
    ours = core.attend(x, x, x, mask=forms["sdpa"])["output"]
    layer = torch.nn.MultiheadAttention(2, 1, bias=False, batch_first=True)
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.eye(2).repeat(3, 1))
        layer.out_proj.weight.copy_(torch.eye(2))
        theirs = layer(x[None], x[None], x[None], attn_mask=forms["multihead"])[0][0]
    added = F.scaled_dot_product_attention(x, x, x, forms["float"])
    torch.testing.assert_close(theirs, ours)
    torch.testing.assert_close(added, ours)


@pytest.mark.parametrize("T", [2, 4, 8])
def test_a_blind_query_is_nan_uniform_or_zero_depending_on_the_way(T):
    found = {one.way: one for one in masks.blind(T)}
    assert all(map(math.isnan, found["softmax"].output))
    assert all(map(math.isnan, found["multihead"].weights))
    assert found["multihead-fast"].output == (0.0, 0.0)
    assert found["sdpa"].output == (0.0, 0.0)
    assert found["fill"].weights == pytest.approx([1 / T] * T)
    assert found["ours"].weights == (0.0,) * T


def test_minus_1e9_loses_to_lower_scores_and_does_not_fit_float16():
    low = masks.fills(-2e9)
    high = masks.fills(-5.0)
    assert {one.way: one.weights for one in low["float32"]} == {"-inf": (1, 0), "-1e9": (0, 1)}
    assert {one.way: one.weights for one in high["float32"]} == {"-inf": (1, 0), "-1e9": (1, 0)}
    infinite, filled = low["float16"]
    assert infinite.weights == (1, 0)
    assert "overflow" in filled.refused


def test_a_past_needs_the_bottom_right_triangle():
    found = masks.aligned(1, 3)
    assert [seen.sum(-1).tolist() for seen in found.values()] == [[1], [4], [4]]
    found = masks.aligned(2, 3)
    assert found["past"].sum(-1).tolist() == [4, 5]
    assert torch.equal(found["past"], found["bottom-right"])
