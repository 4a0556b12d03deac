"""Norm and rotation of queries and keys: against ONNX, against transformers, and their laws."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from onnx.numpy_helper import to_array
from transformers.models.llama.modeling_llama import LlamaRMSNorm

import core
from core import ops
from tests.core.conftest import angles, draw
from tests.core.test_onnx import node_cases


def attributes(case) -> dict:
    return {a.name: a.i if a.type == 2 else a.f for a in case.model.graph.node[0].attribute}


def arrays(case):
    """Inputs by the node's own names, and the outputs."""
    ((inputs, outputs),) = case.data_sets
    made = [torch.tensor(to_array(x) if hasattr(x, "dims") else x) for x in inputs]
    names = [name for name in case.model.graph.node[0].input if name]
    return dict(zip(names, made, strict=True)), torch.tensor(outputs[0])


ROTARY = node_cases("rotaryembedding", "RotaryEmbedding")
NORMS = node_cases("rmsnormalization", "RMSNormalization")


@pytest.mark.parametrize("case", ROTARY, ids=lambda case: case.name)
def test_onnx_rotary(case):
    """ONNX caches one angle per pair; three dimensions are split into heads."""
    given, wanted = arrays(case)
    about = attributes(case)
    x = given["input"]
    flat = x.ndim == 3
    if flat:
        x = x.unflatten(-1, (about["num_heads"], -1)).transpose(1, 2)
    cos, sin = given["cos_cache"], given["sin_cache"]
    if "position_ids" in given:
        cos, sin = (cache[given["position_ids"]] for cache in (cos, sin))
    r = 2 * cos.shape[-1]
    mixed = bool(about.get("interleaved", 0))
    op = ops.Rotate("interleaved" if mixed else "halves", r if r < x.shape[-1] else 0)
    double = (lambda c: c.repeat_interleave(2, -1)) if mixed else (lambda c: torch.cat((c, c), -1))
    found = op.compute(x, double(cos)[:, None], double(sin)[:, None])
    found = found.transpose(1, 2).flatten(-2) if flat else found
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("case", NORMS, ids=lambda case: case.name)
def test_onnx_rms(case):
    given, wanted = arrays(case)
    about = attributes(case)
    x, gain = given["X"], given["W"]
    axis = about.get("axis", -1)
    if axis not in (-1, x.ndim - 1):
        x, gain = x.flatten(axis), gain.flatten()
    found = ops.Rms(about.get("epsilon", 1e-5)).compute(x, gain).reshape(wanted.shape)
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)


def test_the_cases_are_there():
    assert len(ROTARY) >= 7
    assert len(NORMS) >= 10


@given(st.integers(0, 99), st.integers(1, 40), st.sampled_from(ops.PAIRS), st.integers(0, 9))
def test_scores_know_the_distance_only(first, shift, pairs, seed):
    """All positions moved by as much: the same scores, and rows of the same length."""
    q, k, v = (draw(3, 6, seed=seed + n, dtype=torch.float64) for n in range(3))

    def at(start):
        turns = torch.arange(start, start + 3, dtype=torch.float64)[:, None] * torch.tensor(
            [1.0, 0.3, 0.02], dtype=torch.float64
        )
        wide = torch.cat((turns, turns), -1) if pairs == "halves" else turns.repeat_interleave(2, 1)
        return core.attend(q, k, v, rotary=(wide.cos(), wide.sin()), pairs=pairs)

    here, there = at(first), at(first + shift)
    torch.testing.assert_close(here["scores"], there["scores"], atol=1e-9, rtol=0)
    torch.testing.assert_close(here["Q_rotated"].norm(dim=-1), q.norm(dim=-1))


def test_a_trace_says_how_a_number_was_turned():
    t = core.attend(*(draw(3, 4, seed=n) for n in range(3)), rotary=angles(3, 4))
    cell = t.explain("Q_rotated", (2, 1))
    read = [[(s.symbol, s.index) for s in term.sources] for term in cell.terms]
    assert read == [[("Q", (2, 1)), ("cos", (2, 1))], [("Q", (2, 3)), ("sin", (2, 1))]]
    q, (cos, sin) = t["Q"], angles(3, 4)
    wanted = float(q[2, 1] * cos[2, 1] - q[2, 3] * sin[2, 1])
    assert math.isclose(cell.total, wanted, abs_tol=1e-6)
    assert t.steps[5].symbol == "Q_rotated"
    assert t.steps[5].flops == 3 * 3 * 4


def test_a_trace_says_how_a_number_was_normalised():
    norm = torch.tensor([1.0, 2.0]), torch.ones(2)
    t = core.attend([[3.0, 4.0]], [[1.0, 0.0]], [[1.0]], norm=norm, eps=0.0)
    torch.testing.assert_close(t["Q_normed"], torch.tensor([[3.0, 8.0]]) / math.sqrt(12.5))
    cell = t.explain("Q_normed", (0, 1))
    assert cell.text == "4 / √(12.5 + 0)·2 = 2.263"
    assert {s.index for s in cell.terms[0].sources if s.symbol == "Q"} == {(0, 0), (0, 1)}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_are_squared_in_float32(dtype):
    """As transformers does; float16 makes ∞ of 1000² and 0 of 0.0001²."""
    given = [(draw(3, 4, seed=n) * size).to(dtype) for n, size in enumerate((1e3, 1e-4, 1))]
    t = core.attend(*given, norm=(draw(4, seed=3).to(dtype), draw(4, seed=4).to(dtype)))
    for plain, gain, found in (("Q", "gain_Q", "Q_normed"), ("K", "gain_K", "K_normed")):
        network = LlamaRMSNorm(4)
        network.weight.data = t[gain]
        assert torch.equal(t[found], network(t[plain]))
        assert math.isclose(t.explain(found, (0, 1)).total, t[found][0, 1], rel_tol=2**-6)


def test_sizes_alone_make_the_usual_angles():
    """A configuration: 10000^(−2n/d_k) radians a position, and order now matters."""
    t = core.run(core.AttentionConfig(S=3, H=4, rotary="halves"), device="cpu")
    turns = torch.tensor([[p * pace for pace in (1.0, 0.01)] * 2 for p in range(3)])
    torch.testing.assert_close(t["cos"], turns.cos())
    torch.testing.assert_close(t["sin"], turns.sin())
    beside = core.run(core.AttentionConfig(S=3, H=4, rotary="interleaved"), device="cpu")
    torch.testing.assert_close(beside["sin"], t["sin"][:, [0, 2, 1, 3]])
    swapped = core.AttentionConfig(tokens=(("cat", "the"),), H=4, rotary="halves")
    plain = core.AttentionConfig(tokens=(("the", "cat"),), H=4, rotary="halves")
    moved = (
        core.run(swapped, device="cpu")["output"].flip(0) - core.run(plain, device="cpu")["output"]
    )
    assert float(moved.abs().max()) > 1e-3


@pytest.mark.parametrize("change", [{"pairs": "near"}, {"width": 3}, {"width": -2}, {"width": 0.5}])
def test_a_file_cannot_ask_for_another_rotation(change):
    with pytest.raises(ValueError, match="not a known operation"):
        ops.load(ops.Rotate("halves", 4).save() | change)


def test_angles_and_gains_as_arrays_are_those_of_tensors():
    q = torch.randn(5, 4)
    pair, gains = (torch.randn(5, 4), torch.randn(5, 4)), (torch.randn(4), torch.randn(4))
    t = core.attend(q, q, q, rotary=pair, norm=gains)
    same = core.attend(
        q, q, q, rotary=[x.numpy() for x in pair], norm=tuple(x.numpy() for x in gains)
    )
    assert torch.equal(t["weights"], same["weights"])
    with pytest.raises(core.InputError, match="rotary is tuple: give two tensors"):
        core.attend(q, q, q, rotary=(None, pair[1].numpy()))
