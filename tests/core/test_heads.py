"""Heads against torch: the moves of the split, the wrong routes, the sums, shared heads."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from core import AttentionConfig, InputError, attend, heads, run
from core import head_sharing as sharing

few = settings(max_examples=20, deadline=None)


@st.composite
def configs(draw, **fixed):
    """Small configurations whose heads divide H, with a batch axis and a projection."""
    h, d_k = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    sizes = {"S": draw(st.integers(1, 5)), "H": h * d_k, "h": h, "B": draw(st.integers(1, 3))}
    return AttentionConfig(**sizes, seed=draw(st.integers(0, 99)), project=True, gain=2.0, **fixed)


def multihead(trace, h):
    """nn.MultiheadAttention (no biases) with the weights of a trace."""
    H = trace.sizes["H"]
    module = torch.nn.MultiheadAttention(H, h, bias=False, batch_first=True)
    stacked = torch.cat([trace[s].T for s in ("W_Q", "W_K", "W_V")])
    module.in_proj_weight.data = stacked
    module.out_proj.weight.data = trace["W_O"].T.contiguous()
    return module


# --- the split and the way back -----------------------------------------------------------------


@pytest.mark.parametrize("B", [None, 1, 3])
def test_journey_makes_the_tensors_of_view_and_transpose(B):
    trace = heads.journey(S=4, H=8, h=2, B=B)
    x = torch.arange(float((B or 1) * 32)).reshape((4, 8) if B is None else (B, 4, 8))
    apart = x.view(*x.shape[:-1], 2, 4)
    wanted = {
        "Q": x,
        "Q_split": apart,
        "Q_heads": apart.transpose(-3, -2),
        "output": apart.transpose(-3, -2),
        "swapped": apart,
        "contiguous": apart,
        "merged": x,
        "projected": x @ trace["W_O"],
    }
    for symbol, tensor in wanted.items():
        assert torch.equal(trace[symbol], tensor), symbol
    assert trace["Q_heads"].stride() == apart.transpose(-3, -2).stride()


@pytest.mark.parametrize("B", [None, 2])
def test_of_the_moves_only_contiguous_takes_new_memory(B):
    trace = heads.journey(S=4, H=8, h=2, B=B)
    shares = {step.symbol: step.shares for step in trace.steps}
    moves = ("Q_split", "Q_heads", "swapped", "contiguous", "merged")
    assert [shares[s] for s in moves] == ["Q", "Q_split", "output", None, "contiguous"]
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        trace["swapped"].view(trace.shape("merged"))


def test_coordinates_name_the_row_and_column_a_cell_came_from():
    named = heads.coordinates(heads.journey(S=4, H=8, h=2))
    assert named["Q"][1] == ["2,1", "2,2", "2,3", "2,4", "2,5", "2,6", "2,7", "2,8"]
    assert named["Q_split"][1] == [["2,1", "2,2", "2,3", "2,4"], ["2,5", "2,6", "2,7", "2,8"]]
    assert named["Q_heads"][1][1] == ["2,5", "2,6", "2,7", "2,8"]
    assert named["merged"] == named["Q"]
    batched = heads.coordinates(heads.journey(S=2, H=4, h=2, B=2))
    assert (
        batched["Q_heads"][1]
        == batched["Q_heads"][0]
        == [
            [["1,1", "1,2"], ["2,1", "2,2"]],
            [["1,3", "1,4"], ["2,3", "2,4"]],
        ]
    )


@few
@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3))
def test_merge_undoes_the_split(S, h, d_k, B):
    trace = heads.journey(S=S, H=h * d_k, h=h, B=B)
    assert torch.equal(trace["merged"], trace["Q"])
    for symbol in heads.MOVED[1:]:
        for index in itertools.product(*map(range, trace.shape(symbol))):
            cell = trace.explain(symbol, index)
            assert cell.value == cell.total, (symbol, index)


def test_code_of_the_journey_runs_and_gives_the_same_bits():
    trace = heads.journey(S=3, H=6, h=2, B=2)
    made = {}
    exec(trace.source(), made)
    for step in trace.steps:
        assert torch.equal(made[step.symbol], step.tensor), step.symbol
        assert made[step.symbol].stride() == step.strides, step.symbol


def test_heads_that_do_not_divide_are_refused():
    with pytest.raises(InputError, match="H = 8 cannot be split into h = 3"):
        heads.journey(S=4, H=8, h=3)


# --- wrong routes -------------------------------------------------------------------------------


@few
@given(configs())
def test_right_route_is_the_trace_and_multihead_attention(config):
    trace = run(config)
    routed = heads.route(trace, "right")
    torch.testing.assert_close(routed.projected, trace["projected"])
    reference, _ = multihead(trace, config.h)(trace["X"], trace["X"], trace["X"])
    torch.testing.assert_close(routed.projected, reference, atol=1e-5, rtol=1e-5)


@few
@given(configs())
def test_wrong_routes_give_what_torch_gives_for_the_wrong_line(config):
    trace = run(config)
    B, S, h, d = config.B, config.S, config.h, config.d_k
    q, k, v = trace["Q"], trace["K"], trace["V"]
    attention = F.scaled_dot_product_attention
    wrong = attention(*(x.view(B, h, S, d) for x in (q, k, v))).transpose(1, 2)
    apart = [x.view(B, S, h, d) for x in (q, k, v)]
    right = attention(*(x.transpose(1, 2) for x in apart))
    wanted = {
        "split": wrong.reshape(B, S, h * d),
        "merge": right.reshape(B, S, h * d),
        "across": attention(*apart).reshape(B, S, h * d),
    }
    for how, merged in wanted.items():
        torch.testing.assert_close(heads.route(trace, how).merged, merged, atol=1e-5, rtol=1e-5)
        found = heads.compare(config, how)
        gap = (merged @ trace["W_O"] - trace["projected"]).abs()
        assert found.largest == pytest.approx(float(gap.max()), abs=1e-4)
        assert found.per_token == pytest.approx(gap[0].amax(-1).tolist(), abs=1e-4)


def test_mistakes_keep_the_shape_and_change_the_numbers():
    config = AttentionConfig(B=1, S=4, H=8, h=2, project=True, gain=2.0)
    for how in ("split", "merge", "across"):
        found = heads.compare(config, how)
        assert found.wrong.projected.shape == found.right.projected.shape == (1, 4, 8)
        assert found.largest > 0.1 * found.scale
    assert heads.compare(config, "across").wrong.attention.shape("weights") == (1, 4, 2, 2)


def test_each_shown_line_of_code_does_what_its_route_does():
    trace = run(AttentionConfig(B=2, S=4, H=8, h=2, project=True))
    B, S, h, d_k = 2, 4, 2, 4
    names = {"B": B, "S": S, "h": h, "d_k": d_k, "d_v": d_k, "Q": trace["Q"]}
    right, wrong = (eval(line, names) for line in heads.CODE["split"])
    assert torch.equal(right, heads.route(trace, "right").attention["Q"])
    assert torch.equal(wrong, heads.route(trace, "split").attention["Q"])
    names["output"] = heads.route(trace, "right").attention["output"]
    right, wrong = (eval(line, names) for line in heads.CODE["merge"])
    assert torch.equal(right, heads.route(trace, "right").merged)
    assert torch.equal(wrong, heads.route(trace, "merge").merged)
    names |= {s: trace[s] for s in ("Q_heads", "K_heads", "Q_split", "K_split")}
    right, wrong = (eval(line, names) for line in heads.CODE["across"])
    torch.testing.assert_close(right, heads.route(trace, "right").attention["scores"])
    torch.testing.assert_close(wrong, heads.route(trace, "across").attention["scores"])


def test_origins_of_the_4_by_8_example():
    right, wrong = heads.origins(4, 2, 4, "right"), heads.origins(4, 2, 4, "split")
    assert right.shape == wrong.shape == (2, 4, 4)
    assert right.cells[1][2] == [[2, 4], [2, 5], [2, 6], [2, 7]]  # head 2, row 3: token 3
    assert wrong.cells[0][2] == [[1, 0], [1, 1], [1, 2], [1, 3]]  # head 1, row 3: token 2
    assert right.counts == [[4, 4, 4, 4], [4, 4, 4, 4]]
    assert wrong.counts == [[8, 8, 0, 0], [0, 0, 8, 8]]
    merged = heads.origins(4, 2, 4, "merge")
    assert merged.shape == (4, 8)
    assert merged.cells[0] == [*right.cells[0][0], *right.cells[0][1]]
    assert merged.counts[0] == [4, 4, 0, 0]
    assert heads.origins(4, 2, 4, "back").cells == [[[s, c] for c in range(8)] for s in range(4)]


@few
@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 4))
def test_origins_are_the_places_the_numbers_of_a_route_come_from(S, h, d_k):
    x = torch.rand(1, S, h * d_k)
    views = {
        "right": x.view(1, S, h, d_k).transpose(1, 2)[0],
        "split": x.view(1, h, S, d_k)[0],
        "merge": x.view(1, S, h, d_k).transpose(1, 2).reshape(S, h * d_k),
    }
    for how, tensor in views.items():
        found = heads.origins(S, h, d_k, how)
        rows, columns = torch.tensor(found.cells).unbind(-1)
        assert torch.equal(x[0][rows, columns], tensor)
        assert sum(map(sum, found.counts)) == S * h * d_k


def test_influence_tells_who_hears_whom():
    config = AttentionConfig(S=4, H=8, h=2, gain=2.0)
    heard = torch.tensor(heads.influence(config, "right"))
    assert (heard > 0).all()
    across = torch.tensor(heads.influence(config, "across"))
    assert torch.equal(across > 0, torch.eye(4, dtype=torch.bool))
    causal = config.changed(causal=True)
    past = torch.ones(4, 4, dtype=torch.bool).tril()
    assert torch.equal(torch.tensor(heads.influence(causal, "right")) > 0, past)
    for how in ("split", "merge"):
        assert (torch.tensor(heads.influence(causal, how)) > 0)[~past].any()


def test_influence_is_the_difference_of_two_runs():
    config = AttentionConfig(B=1, S=3, H=4, h=2, project=True, dtype="float64")
    trace = run(config)
    module = multihead(trace, 2).double()
    X = trace["X"]
    changed = X.clone()
    changed[0, 1] *= -1
    gap = (module(X, X, X)[0] - module(changed, changed, changed)[0]).abs().amax(-1)[0]
    found = torch.tensor(heads.influence(config, "right"))[:, 1]
    torch.testing.assert_close(found, gap.float(), atol=1e-5, rtol=1e-5)


# --- one big W_Q, contributions, widths ---------------------------------------------------------


@few
@given(configs())
def test_small_matrices_give_the_columns_of_the_big_product(config):
    trace = run(config)
    for symbol in "QKV":
        cut = heads.slices(trace, symbol)
        whole = torch.cat([piece.product for piece in cut], -1)
        torch.testing.assert_close(whole, trace[symbol])
        assert torch.equal(torch.cat([piece.weight for piece in cut], -1), trace[f"W_{symbol}"])
        gaps = (whole - trace[symbol]).abs().unflatten(-1, (config.h, -1)).amax((0, 1, 3))
        assert [piece.difference for piece in cut] == gaps.tolist()


@few
@given(configs())
def test_contributions_of_the_heads_sum_to_the_projection(config):
    trace = run(config)
    found = heads.contributions(trace)
    assert found.parts.shape == (config.B, config.h, config.S, config.H)
    torch.testing.assert_close(found.parts.sum(1), trace["projected"], atol=1e-5, rtol=1e-5)
    assert found.difference < 1e-4


def test_contribution_of_one_head_is_what_is_left_when_the_others_are_silent():
    trace = run(AttentionConfig(S=4, H=8, h=2, project=True))
    alone = trace["output"].clone()
    alone[0] = 0
    only = alone.transpose(0, 1).reshape(4, 8) @ trace["W_O"]
    torch.testing.assert_close(heads.contributions(trace).parts[1], only)


def test_width_that_does_not_multiply_to_H():
    trace = run(AttentionConfig(S=4, H=512, h=8, d_k=256, project=True))
    assert trace.shape("merged") == (4, 2048)
    assert trace.shape("W_O") == (2048, 512)
    assert trace.shape("projected") == (4, 512)
    assert heads.view_refusal(trace) == (
        "RuntimeError: shape '[4, 512]' is invalid for input of size 8192"
    )
    q, k, v = trace["Q_heads"], trace["K_heads"], trace["V_heads"]
    expected = F.scaled_dot_product_attention(q[None], k[None], v[None])[0]
    torch.testing.assert_close(trace["output"], expected, atol=1e-5, rtol=1e-5)
    usual = run(AttentionConfig(S=4, H=512, h=8, project=True))
    assert heads.view_refusal(usual) is None
    alone = run(AttentionConfig(S=4, H=6, h=1, d_k=5, project=True))
    assert "invalid for input of size 20" in heads.view_refusal(alone)


# --- shared key/value heads ---------------------------------------------------------------------


def test_head_map_is_the_one_that_sdpa_uses():
    q, k = torch.randn(1, 6, 3, 4), torch.randn(1, 2, 3, 4)
    v = torch.arange(2.0).view(1, 2, 1, 1).expand(1, 2, 3, 4)  # each value head says its number
    reference = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    assert reference[0, :, 0, 0].tolist() == pytest.approx(sharing.head_map(6, 2))
    assert attend(q, k, v)["output"][0, :, 0, 0].tolist() == pytest.approx(sharing.head_map(6, 2))
    assert sharing.head_map(4, 4) == (0, 1, 2, 3)
    assert sharing.head_map(4, 1) == (0, 0, 0, 0)


def test_expand_costs_nothing_and_a_copy_costs_r_times():
    K, wide, reshaped, repeated = sharing.repeats(h=12, g=4, T=16, d_k=64, dtype="float16")
    assert (K.strides, K.bytes) == ((1024, 64, 1), 4 * 16 * 64 * 2)
    assert (wide.shape, wide.strides) == ((4, 3, 16, 64), (1024, 0, 64, 1))
    assert (wide.bytes, wide.shares, wide.same) == (K.bytes, True, True)
    for copy in (reshaped, repeated):
        assert (copy.shape, copy.strides) == ((12, 16, 64), (1024, 64, 1))
        assert (copy.bytes, copy.shares, copy.same) == (3 * K.bytes, False, True)


def test_code_of_each_way_to_repeat_gives_the_facts_shown():
    g, h, T, d_k = 2, 6, 3, 4
    K = torch.arange(24.0).view(g, T, d_k)
    for held in sharing.repeats(h, g, T, d_k):
        made = eval(held.code, {"K": K, "g": g, "h": h, "T": T, "d_k": d_k})
        assert (tuple(made.shape), made.stride()) == (held.shape, held.strides)
        assert made.untyped_storage().nbytes() == held.bytes
        assert (made.data_ptr() == K.data_ptr()) == held.shares


@pytest.mark.parametrize(("h", "g"), [(12, 12), (12, 4), (12, 1)])
def test_budget_counts_the_weights_and_the_cache_of_real_tensors(h, g):
    config = AttentionConfig(S=1, H=48, h=h, g=g, project=True)
    trace, found = run(config), sharing.budget(config)
    assert found.parameters == sum(trace[w].numel() for w in ("W_Q", "W_K", "W_V", "W_O"))
    kept = (trace["K_heads"], trace["V_heads"])  # of one token
    assert found.cache_bytes == sum(t.numel() * t.element_size() for t in kept)


def test_budgets_of_known_models():
    bert = AttentionConfig(**sharing.MODELS["bert-base"])
    assert bert.d_k == 64
    assert sharing.one_head(bert) == 147_456
    listed = sharing.budgets(bert.changed(dtype="float16"))
    assert [(b.g, b.name) for b in listed] == [
        (12, "MHA"), (6, "GQA"), (4, "GQA"), (3, "GQA"), (2, "GQA"), (1, "MQA"),
    ]  # fmt: skip
    assert [b.cache_bytes for b in listed] == [3072, 1536, 1024, 768, 512, 256]
    assert all(b.cache_bytes * 12 == listed[0].cache_bytes * b.g for b in listed)
    assert {b.query_parameters for b in listed} == {2 * 768 * 768}
