"""Derivatives of one element: against finite differences, by hand, and where they are 0."""

import math

import pytest
import torch

import core
from core import AttentionConfig

KINDS = {
    "plain": {},
    "heads": {"h": 2, "project": True, "causal": True},
    "grouped": {"H": 8, "h": 4, "g": 2, "B": 2, "softcap": 1.5, "project": True},
    "cross": {"cross": True, "T": 3, "lengths": (2,), "scale": 0.7},
    "blind": {"hidden": ((1, 0), (1, 1), (1, 2)), "S": 3},
}


def trace(name) -> core.Trace:
    fields = {"S": 3, "H": 4, "dtype": "float64"} | KINDS[name]
    return core.run(AttentionConfig(**fields), device="cpu")


def rerun(t, name, nudged):
    """The same recipe on inputs of which one was changed."""
    from core.ops import Given
    from core.trace import run

    steps = [step.step for step in t.steps]
    given = {s.symbol: s.tensor for s in t.steps if isinstance(s.op, Given)}
    return run(steps, given | {name: nudged}, dict(t.sizes))


@pytest.mark.parametrize("name", KINDS)
def test_finite_differences(name):
    t = trace(name)
    last = t.steps[-1].symbol
    for target, index in ((last, (0,) * t[last].ndim), ("weights", (0,) * t["weights"].ndim)):
        found = t.gradient(target, index)
        for step in t.steps:
            if step.reads or step.tensor.dtype == torch.bool:
                continue
            wanted = torch.zeros_like(step.tensor)
            for place in torch.cartesian_prod(*map(torch.arange, step.shape)).tolist():
                wanted[tuple(place)] = slope(t, step.symbol, tuple(place), target, index)
            torch.testing.assert_close(found[step.symbol], wanted, rtol=1e-6, atol=1e-8)


def slope(t, symbol, place, target, index, by=1e-5):
    ends = []
    for nudge in (by, -by):
        nudged = t[symbol].clone()
        nudged[place] += nudge
        ends.append(float(rerun(t, symbol, nudged)[target][index]))
    return (ends[0] - ends[1]) / (2 * by)


def test_intermediates_by_hand():
    t = trace("plain")
    d = t.gradient("output", (1, 2))
    w, v = t["weights"][1], t["V"][:, 2]
    assert torch.equal(d["output"], torch.zeros(3, 4, dtype=torch.float64).index_put(
        (torch.tensor(1), torch.tensor(2)), torch.tensor(1.0, dtype=torch.float64)))  # fmt: skip
    torch.testing.assert_close(d["weights"][1], v)
    assert d["weights"][[0, 2]].eq(0).all()
    torch.testing.assert_close(d["V"][:, 2], w)
    # Softmax: ∂o/∂x_j = w_j (v_j − Σ w·v)
    torch.testing.assert_close(d["scaled"][1], w * (v - w @ v))
    torch.testing.assert_close(d["scores"], d["scaled"] / 2)
    torch.testing.assert_close(d["Q"][1], d["scores"][1] @ t["K"])


def test_softmax_of_one_weight():
    t = trace("plain")
    w, d = t["weights"][2], t.gradient("weights", (2, 0))["scaled"][2]
    torch.testing.assert_close(d, w[0] * (torch.eye(3, dtype=torch.float64)[0] - w))


def test_what_does_not_matter_has_gradient_0():
    t = trace("heads")
    d = t.gradient("Q", (0, 0))
    for symbol in ("K", "V", "weights", "projected", "W_K", "W_O"):
        assert d[symbol].eq(0).all()
    assert d["X"][0].ne(0).all()
    assert d["X"][1:].eq(0).all()
    assert "mask" not in d
    causal = t.gradient("output", (0, 0, 0))
    assert causal["X"][1:].eq(0).all()  # the first query sees itself alone


def test_shapes_and_finiteness(example):
    last = example.steps[-1]
    d = example.gradient(last.symbol, tuple(n - 1 for n in last.shape))
    assert set(d) == {s.symbol for s in example.steps if s.tensor.is_floating_point()}
    for symbol, found in d.items():
        assert found.shape == example[symbol].shape
        assert found.dtype == example[symbol].dtype


def test_no_nan_in_gradients(example, request):
    if "not a number" in request.node.name or "overflow" in request.node.name:
        return  # a derivative at ∞ is none
    shape = example.shape("output")
    for index in ((0,) * len(shape), tuple(n - 1 for n in shape)):
        for symbol, found in example.gradient("output", index).items():
            assert found.isfinite().all(), symbol


def test_a_blind_query_has_no_gradient():
    t = trace("blind")
    d = t.gradient("output", (1, 0))
    assert all(found.isfinite().all() for found in d.values())
    assert all(d[symbol].eq(0).all() for symbol in ("X", "W_Q", "W_K", "W_V", "scores"))


def test_the_trace_is_left_alone():
    t = trace("heads")
    before = {symbol: tensor.clone() for symbol, tensor in t.items()}
    t.gradient("projected", (0, 0))
    t.gradient("X", (0, 0))
    for symbol, tensor in t.items():
        assert torch.equal(tensor, before[symbol])
        assert not tensor.requires_grad
        assert tensor.grad is None


def test_an_input_is_its_own_derivative():
    t = trace("plain")
    d = t.gradient("X", (1, 2))
    assert d["X"].nonzero().tolist() == [[1, 2]]
    assert float(d["X"][1, 2]) == 1


def test_refusals():
    t = trace("heads")
    with pytest.raises(core.InputError) as problem:
        t.gradient("mask", (0, 0))
    assert problem.value.id == "no-gradient"
    with pytest.raises(core.InputError) as problem:
        t.gradient("weights", (9, 9, 9))
    assert problem.value.id == "no-cell"
    with pytest.raises(core.InputError) as problem:
        t.gradient("attention", (0, 0))
    assert problem.value.id == "no-symbol"
    assert not math.isnan(float(t["output"][0, 0, 0]))


@pytest.mark.parametrize("within", [False, True])
def test_tensors_made_for_inference_have_one_too(within):
    """Such as a model leaves behind: autograd refuses them, so the trace takes copies."""
    with torch.inference_mode():
        q, shown = torch.randn(3, 4), torch.ones(3, 3, dtype=torch.bool).tril()
        t = core.attend(q, q, q, mask=shown) if within else None
    t = t or core.attend(q, q, q, mask=shown)
    plain = core.attend(q.clone(), q.clone(), q.clone(), causal=True)
    found, wanted = t.gradient("output", (2, 1)), plain.gradient("output", (2, 1))
    assert torch.equal(found["Q"], wanted["Q"])
    assert float(found["Q"].abs().max()) > 0


def test_a_mask_made_in_inference_mode_lets_the_gradient_through():
    """The engine makes it there: causal masks and windows."""
    q = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        t = core.attend(q, q, q, causal=True, window=(1, 0))
        within = t.gradient("output", (2, 1))
    wanted = core.attend(q, q, q, causal=True, window=(1, 0)).gradient("output", (2, 1))
    for found in (within, t.gradient("output", (2, 1))):
        assert torch.equal(found["Q"], wanted["Q"])
