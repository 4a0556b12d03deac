"""Inputs on which people got attention wrong in public, each with its right answer.

A test is named after the number of its case. Cases about later capabilities and about the screen
are not the engine's; `ELSEWHERE` lists them with the reason, so that none is forgotten.
"""

import math
import re
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import core
from core import masks

INF = math.inf

# fmt: off
LISTED = {
    1, 3, 4, 6, 7, 8, 9, 12, 13, 14, 15, 16, 17, 18, 19, 22, 23, 24,
    25, 26, 27, 28, 29, 30, 31, 32, 33, 35, 36, 37, 39, 40, 41, 43, 45, 46,
    47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 58, 59, 61, 62, 63, 64, 65,
}
# fmt: on

ELSEWHERE = {
    36: "ALiBi slopes for 6 heads: a capability to come",
    37: "ALiBi slopes for 8 heads: a capability to come",
    39: "T5 position buckets: a capability to come",
    40: "T5 position buckets with a past: a capability to come",
    43: "attention sinks: a capability to come",
    50: "one matrix for Q, K and V, taken apart by what it gives: tests of the models",
    51: "generation step by step: tests of the translator",
    52: "tiling as in FlashAttention: a capability to come",
    53: "how a long map is drawn: tests of the long maps",
    54: "the batch selector: tests of the pages",
    55: "which tokens are named as padding: tests of the pages",
    56: "labels of repeated tokens: tests of the pages",
    58: "which way up the map is drawn: tests of the microscope",
    59: "colour scales: tests of the manifest and the microscope",
    61: "how pieces of words are written: tests of the pages",
    62: "characters of several pieces: tests of the pages",
    63: "fonts for Chinese: tests in the browser",
    64: "layout of 60 characters: tests in the browser",
    65: "−∞ and NaN on their way to the browser: tests of the manifest",
}


def zeros(S, T, width=2):
    """q, k and v of which q and k are 0: all scores are 0."""
    return torch.zeros(S, width), torch.zeros(T, width), torch.arange(1.0, T + 1)[:, None]


def mask(*rows: str) -> torch.Tensor:
    """A mask of T and F."""
    return torch.tensor([[letter == "T" for letter in row] for row in rows])


def near(found, wanted, atol=5e-5):
    torch.testing.assert_close(found, torch.tensor(wanted).to(found.dtype), rtol=0, atol=atol)


def draw(*shape, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def ids(trace) -> list[str]:
    return [notice.id for notice in trace.notices]


def test_every_case_is_here_or_elsewhere():
    here = {int(n) for name in globals() for n in re.findall(r"^test_case_(\d+)", name)}
    assert not here & ELSEWHERE.keys()
    assert here | ELSEWHERE.keys() == LISTED


# --- masks ---------------------------------------------------------------------------


def test_case_1_a_row_that_sees_nothing():
    t = core.attend(*zeros(2, 4), mask=mask("FFFF", "TTTF"))
    near(t["weights"], [[0, 0, 0, 0], [1 / 3, 1 / 3, 1 / 3, 0]])
    near(t["output"], [[0.0], [2.0]])
    assert t.notices[0].facts == {"count": 1, "rows": 2, "index": (0,)}
    assert str(t.notices[0]).startswith("1 of 2 queries may see no key")


def test_case_3_nan_behind_a_mask_is_named():
    q, k, v = zeros(1, 2)
    v[1, 0] = math.nan
    t = core.attend(q, k, v, mask=mask("TF"))
    near(t["weights"], [[1.0, 0.0]], atol=0)
    assert t["output"].isnan().all()
    assert [(n.id, n.facts) for n in t.notices] == [("nan", {"symbol": "V", "index": (1, 0)})]


def test_case_4_one_sample_of_length_0():
    q, k, v = draw(2, 1, 3, 2), draw(2, 1, 3, 2, seed=1), draw(2, 1, 3, 2, seed=2)
    t = core.attend(q, k, v, mask=masks.padding([3, 0], 3))
    alone = core.attend(q[:1], k[:1], v[:1])
    assert torch.equal(t["weights"][:1], alone["weights"])
    assert torch.equal(t["output"][:1], alone["output"])
    assert t["weights"][1].eq(0).all()
    assert t["output"][1].eq(0).all()
    assert t.notices[0].id == "blind"
    assert t.notices[0].facts == {"count": 3, "rows": 6, "index": (1, 0, 0)}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_case_6_masks_in_every_type(dtype):
    q, k, v = (draw(1, 2, 4, 8, seed=n, dtype=dtype) for n in range(3))
    seen = mask("TFFF", "TTFF", "TTTF", "FFFF")
    t = core.attend(q, k, v, mask=seen)
    hidden = ~seen.expand(1, 2, 4, 4)
    assert t["masked"][hidden].eq(-INF).all()
    assert t["weights"][hidden].eq(0).all()
    assert t["weights"].dtype == dtype
    assert not any(s.tensor.isnan().any() for s in t.steps)
    wanted = F.scaled_dot_product_attention(q.float(), k.float(), v.float(), attn_mask=seen)
    torch.testing.assert_close(t["output"].float(), wanted, rtol=2**-6, atol=2**-6)


def test_case_7_true_means_may_attend():
    t = core.attend(*zeros(3, 3), causal=True)
    near(t["weights"], [[1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]])
    assert t["mask"].tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    same = core.attend(*zeros(3, 3), mask=mask("TFF", "TTF", "TTT"))
    assert torch.equal(same["weights"], t["weights"])
    theirs = masks.from_multihead(mask("FTT", "FFT", "FFF"))
    assert torch.equal(theirs, t["mask"])


def test_case_8_a_float_mask_of_zeros_and_ones():
    with pytest.warns(UserWarning, match="holds only 0 and 1") as heard:
        t = core.attend(*zeros(1, 4), mask=torch.tensor([[0.0, 1.0, 1.0, 1.0]]))
    near(t["weights"], [[0.1092, 0.2969, 0.2969, 0.2969]])
    assert ids(t) == ["mask-looks-boolean"]
    assert heard[0].filename == __file__  # it points at the caller
    X = torch.eye(2)
    with pytest.warns(UserWarning, match="holds only 0 and 1") as heard:
        core.self_attention(X, X, X, X, mask=torch.eye(2))
    assert heard[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        core.attend(*zeros(1, 4), mask=torch.zeros(1, 4))
        core.attend(*zeros(1, 4), mask=torch.tensor([[0.0, 1.0, -1.0, 1.0]]))


def test_case_9_three_dimensions_are_ambiguous():
    q = torch.zeros(2, 2, 3, 4)
    with pytest.raises(core.InputError) as refused:
        core.attend(q, q, q, mask=torch.ones(2, 3, 3, dtype=torch.bool))
    assert refused.value.id == "mask-rank-3"
    assert "(2, 3, 3)" in str(refused.value)
    assert "per batch or per head" in str(refused.value)


def test_case_12_one_query_after_a_past():
    past = torch.zeros(1, 1, 3, 2)
    new = torch.zeros(1, 1, 1, 2)
    t = core.attend(new, new, new, causal=True, past_key=past, past_value=past)
    near(t["weights"], [[[[0.25, 0.25, 0.25, 0.25]]]], atol=0)


def test_case_13_two_queries_after_a_past():
    past, new = torch.zeros(1, 1, 3, 2), torch.zeros(1, 1, 2, 2)
    t = core.attend(new, new, new, causal=True, past_key=past, past_value=past)
    assert (t["weights"] > 0).sum(-1).tolist() == [[[4, 5]]]
    without = core.attend(*zeros(2, 5), causal=True)
    assert (without["weights"] > 0).sum(-1).tolist() == [1, 2]  # top left
    aligned = core.attend(*zeros(2, 5), causal="bottom-right")
    assert (aligned["weights"] > 0).sum(-1).tolist() == [4, 5]


def test_case_14_more_queries_than_keys_at_the_bottom_right():
    t = core.attend(*zeros(4, 2), causal="bottom-right")
    near(t["weights"], [[0, 0], [0, 0], [1, 0], [0.5, 0.5]], atol=0)
    assert t.notices[0].facts == {"count": 2, "rows": 4, "index": (0,)}


def test_case_15_a_valid_length_per_sample():
    q, k = torch.zeros(2, 1, 1, 4), torch.zeros(2, 1, 8, 4)
    t = core.attend(q, k, k, mask=masks.padding([3, 5], 8))
    assert (t["weights"] > 0).sum(-1).flatten().tolist() == [3, 5]
    near(t["weights"][1, 0, 0], [0.2] * 5 + [0.0] * 3)


# --- heads ---------------------------------------------------------------------------


def test_case_16_heads_are_columns_side_by_side():
    X, I = torch.arange(12.0).view(1, 2, 6), torch.eye(6)  # noqa: E741
    t = core.self_attention(X, I, I, I, heads=3)
    assert t["Q_heads"][0, 0].tolist() == [[0, 1], [6, 7]]
    assert t["Q_heads"][0, 2].tolist() == [[4, 5], [10, 11]]


def test_case_17_split_then_merge_is_the_identity():
    X, I = torch.arange(12.0).view(1, 2, 6), torch.eye(6)  # noqa: E741
    # Each query sees itself alone, so that the weights are the identity too.
    t = core.self_attention(X, I, I, I, I, heads=3, mask=torch.eye(2, dtype=torch.bool))
    assert torch.equal(t["merged"], X)
    assert torch.equal(t["projected"], X)


@pytest.mark.filterwarnings("error")  # weights that want a gradient are taken without a murmur
def test_case_18_multihead_attention():
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(8, 2, bias=False, batch_first=True).eval()
    X = draw(2, 3, 8)
    W = [part.T for part in (*layer.in_proj_weight.detach().chunk(3), layer.out_proj.weight)]
    wanted, weights = layer(X, X, X, average_attn_weights=False)
    t = core.self_attention(X, *W, heads=2)
    assert (t["projected"] - wanted).abs().max() < 1e-6
    assert (t["weights"] - weights).abs().max() < 1e-6


def test_case_19_heads_are_joined_then_projected():
    X, W = draw(3, 6), [draw(6, 8, seed=n) for n in (1, 2, 3)]
    W_O = draw(8, 5, seed=4)
    t = core.self_attention(X, *W, W_O, heads=2)
    assert t["merged"].shape == (3, 8)
    joined = torch.cat((t["output"][0], t["output"][1]), -1)
    assert torch.equal(t["merged"], joined)
    assert torch.equal(t["projected"], joined @ W_O)


def test_case_22_sizes_that_do_not_divide():
    with pytest.raises(core.InputError) as refused:
        core.AttentionConfig(H=10, h=3)
    assert refused.value.facts == {"H": 10, "h": 3}
    assert "H = 10" in str(refused.value)
    assert "h = 3" in str(refused.value)
    freed = core.run(core.AttentionConfig(H=10, h=3, d_k=4))
    assert freed["merged"].shape == (4, 12)


def test_case_23_grouped_heads_are_neighbours():
    q, k = torch.zeros(1, 4, 3, 2), torch.zeros(1, 2, 3, 2)
    v = torch.tensor([0.0, 1.0]).view(1, 2, 1, 1).expand(1, 2, 3, 2)
    t = core.attend(q, k, v)
    near(t["output"][0, :, 0, 0], [0.0, 0.0, 1.0, 1.0], atol=1e-6)


def test_case_24_grouped_scores_keep_their_width():
    t = core.attend(draw(1, 4, 3, 2), draw(1, 2, 3, 2), draw(1, 2, 3, 2))
    assert t["scores"].shape == (1, 4, 3, 3)
    X, W_K = draw(3, 8), draw(8, 4, seed=1)
    t = core.self_attention(X, draw(8, 8, seed=2), W_K, W_K, heads=4, kv_heads=2)
    assert t["scores"].shape == (4, 3, 3)


# --- scale, softmax ------------------------------------------------------------------


def test_case_25_the_divisor_comes_from_the_head():
    t = core.run(core.AttentionConfig(S=2, H=512, h=8))
    assert torch.equal(t["scaled"], t["scores"] / 8)
    assert t.step("scaled").op.factor == 1 / 8


def test_case_26_a_split_scale_has_the_same_product():
    q, k, v = (draw(1, 1, 3, 16, seed=n, dtype=torch.float16) for n in range(3))
    t = core.attend(q, k, v)
    factors = [t.step(symbol).op.factor for symbol in ("Q_prescaled", "K_prescaled")]
    assert math.prod(factors) == pytest.approx(1 / 4, rel=1e-15)
    assert t.explain("Q_prescaled", (0, 0, 0, 0)).text.count("1/⁴√16") == 1
    wanted = (t["scores"].float() / 4).half()
    torch.testing.assert_close(t["scaled"], wanted, rtol=2**-9, atol=2**-9)


def test_case_27_scaling_is_a_step_of_its_own():
    t = core.run(core.AttentionConfig(S=3, H=8, d_k=4))
    symbols = [step.symbol for step in t.steps]
    assert symbols.index("scaled") == symbols.index("scores") + 1
    assert torch.equal(t["scaled"], t["Q"] @ t["K"].T / 2)


def test_case_28_softmax_runs_along_the_keys():
    # q = I and k = scoresᵀ make exactly these scores.
    t = core.attend(torch.eye(2), torch.tensor([[1.0, 3], [2, 4]]), torch.eye(2), scale=1.0)
    assert t["scores"].tolist() == [[1, 2], [3, 4]]
    near(t["weights"], [[0.2689, 0.7311], [0.2689, 0.7311]])


def test_case_29_a_batch_of_one():
    t = core.run(core.AttentionConfig(B=1))
    near(t["weights"].sum(-1), [[1.0] * 4], atol=1e-6)
    assert not torch.equal(t["weights"], torch.ones(1, 4, 4))


def test_case_30_weights_are_kept_per_head():
    t = core.run(core.AttentionConfig(B=3, S=4, T=5, cross=True, H=8, h=2))
    assert t["weights"].shape == (3, 2, 4, 5)
    assert t.step("weights").dims == "B h S T"
    near(t["weights"].mean(1).sum(-1), [[1.0] * 4] * 3, atol=1e-6)


def test_case_31_there_is_no_dropout():
    t = core.run(core.AttentionConfig(S=6, H=8, h=2))
    assert "dropout" not in " ".join(t)
    near(t["weights"].sum(-1), [[1.0] * 6] * 2, atol=1e-6)


@pytest.mark.parametrize("S", [3, 64])
def test_case_32_intermediates_do_not_change_the_result(S):
    q, k, v = (draw(2, 3, S, 16, seed=n) for n in range(3))
    t = core.attend(q, k, v, causal=True)
    assert [s.symbol for s in t.steps][3:] == [
        "scores", "scaled", "mask", "masked", "weights", "output",
    ]  # fmt: skip
    fused = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert (t["output"] - fused).abs().max() < 1e-5


def test_case_41_softcap_comes_before_the_mask():
    q, k = torch.tensor([[1.0]]), torch.tensor([[100.0], [0.0], [100.0]])
    t = core.attend(q, k, torch.eye(3), scale=1.0, softcap=50.0, mask=mask("TTF"))
    assert list(t)[3:] == ["scores", "scaled", "capped", "mask", "masked", "weights", "output"]
    near(t["capped"], [[48.201, 0.0, 48.201]], atol=5e-4)
    assert t["masked"][0, 2] == -INF
    assert t["weights"][0, 2] == 0
    near(t["weights"].sum(-1), [1.0], atol=1e-6)


def test_case_45_left_padding_changes_nothing_for_the_rest():
    q, k, v = (draw(1, 2, 4, 8, seed=n) for n in range(3))
    alone = core.attend(q, k, v, causal=True)
    q, k, v = (F.pad(x, (0, 0, 2, 0), value=9.0) for x in (q, k, v))
    hidden = torch.tensor([False, False, True, True, True, True]).view(1, 1, 1, 6)
    padded = core.attend(q, k, v, causal=True, mask=hidden)
    torch.testing.assert_close(padded["weights"][..., 2:, 2:], alone["weights"])
    torch.testing.assert_close(padded["output"][..., 2:, :], alone["output"])
    assert padded["weights"][..., 2:, :2].eq(0).all()
    assert padded["output"][..., :2, :].eq(0).all()  # padded queries see nothing, and no NaN


def test_case_46_float16_overflows_before_the_scale():
    q = torch.full((1, 128), 25.0, dtype=torch.float16)
    k = torch.stack((q[0], -q[0], q[0] * 0.99))
    t = core.attend(q, k, torch.eye(3, dtype=torch.float16), softmax_dtype=torch.float32)
    assert t["scores"].tolist()[0][:2] == [INF, -INF]
    near(t["scaled"], [[7071.0, -7071.0, 7000.0]], atol=8.0)
    assert [(n.id, n.facts["symbol"]) for n in t.notices] == [("overflow", "scores")]
    assert "float16" in str(t.notices[0])
    near(t["weights"], [[1.0, 0.0, 0.0]], atol=1e-6)
    assert t["output"].isfinite().all()


def test_case_46_other_ways_to_leave_float16():
    """What else passes 65,504: a scale above 1, and a softmax in float16 of float32 scores."""
    q, k = (torch.tensor([[x]], dtype=torch.float16) for x in (60000.0, 0.001))
    t = core.attend(q, k, q, scale=4.0)  # 60,000·√4 would be too large, 60,000·0.001·4 is not
    near(t["scaled"], [[240.0]], atol=0.5)
    assert not t.notices
    low, high = torch.tensor([[-1e5], [-2e5]]), torch.tensor([[1e5], [2e5], [3.0]])
    t = core.attend(torch.ones(1, 1), low, low, scale=1.0, softmax_dtype="float16")
    near(t["weights"], [[0.5, 0.5]])  # both stop at −65,504; none is hidden
    t = core.attend(torch.ones(1, 1), high, high, scale=1.0, softmax_dtype="float16")
    near(t["weights"], [[0.5, 0.5, 0.0]])


# --- positions ------------------------------------------------------------------------


def angles(positions, d):
    """cos and sin (S, d) of rotary positions; each pair's angle stands once in each half."""
    turns = positions[:, None] * 10000.0 ** (-torch.arange(0, d, 2) / d)
    return (torch.cat((turns, turns), -1).cos(), torch.cat((turns, turns), -1).sin())


def test_case_33_two_ways_of_pairing():
    x, (cos, sin) = torch.tensor([[1.0, 0, 0, 0]]), angles(torch.tensor([1.0]), 4)
    halves = core.attend(x, x, x, rotary=(cos, sin))
    near(halves["Q_rotated"], [[0.5403, 0.0, 0.8415, 0.0]])
    beside = [part[:, :2].repeat_interleave(2, -1) for part in (cos, sin)]
    mixed = core.attend(x, x, x, rotary=beside, pairs="interleaved")
    near(mixed["Q_rotated"], [[0.5403, 0.8415, 0.0, 0.0]])
    # Which one was used stands in the step, and in the code it shows.
    assert halves.step("Q_rotated").op.pairs == "halves"
    assert mixed.step("Q_rotated").op.pairs == "interleaved"


def test_case_35_a_query_after_a_past_is_turned_by_its_own_position():
    q, k, v = (draw(1, 1, 4, 8, seed=n) for n in range(3))
    whole = core.attend(q, k, v, causal=True, rotary=angles(torch.arange(4.0), 8))
    last = core.attend(
        q[:, :, 3:], k[:, :, 3:], v[:, :, 3:], causal=True,
        past_key=whole["K_rotated"][:, :, :3], past_value=v[:, :, :3],
        rotary=angles(torch.tensor([3.0]), 8),
    )  # fmt: skip
    torch.testing.assert_close(last["Q_rotated"][0, 0, 0], whole["Q_rotated"][0, 0, 3])
    torch.testing.assert_close(last["output"][0, 0, 0], whole["output"][0, 0, 3])


# --- memory layout -------------------------------------------------------------------


def test_case_47_strides_are_kept_and_shown():
    X = draw(6, 4).T
    W = [draw(3, 6, seed=n).T for n in (1, 2, 3)]
    t = core.self_attention(X, *W)
    step = t.steps[0]
    assert (step.symbol, step.shape, step.strides) == ("X", (4, 6), (1, 4))
    assert not step.tensor.is_contiguous()


def test_case_48_a_transposed_query_equals_its_copy():
    q, k, v = (draw(2, 3, 8, 5, seed=n) for n in range(3))
    q, k, v = (x.transpose(-1, -2) for x in (q, k, v))
    t = core.attend(q, k, v)
    copied = core.attend(q.contiguous(), k.contiguous(), v.contiguous())
    assert (t["output"] - copied["output"]).abs().max() < 1e-6


def test_case_49_axes_have_names():
    t = core.self_attention(draw(2, 3, 8), *[draw(8, 8, seed=n) for n in range(3)])
    assert t.step("X").dims == "B S H"
    assert (t.sizes["B"], t.sizes["S"], t.sizes["H"]) == (2, 3, 8)
    with pytest.raises(core.InputError, match="W_Q"):
        core.self_attention(draw(8, 3), *[draw(8, 8)] * 3)  # (H, S) instead of (S, H)
