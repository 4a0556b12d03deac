"""Softmax taken apart agrees with torch, and number types give out where they are said to."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core import InputError
from core.experiments import softmax
from core.experiments.softmax import (
    DTYPES,
    engine,
    in_types,
    jacobian,
    limit,
    moved,
    read_scores,
    slope,
    snippet,
    taken_apart,
    temperatures,
    write_scores,
)

ROWS = st.lists(st.floats(-50, 50, width=32), min_size=2, max_size=12).map(tuple)


@settings(max_examples=60, deadline=None)
@given(ROWS, st.sampled_from([0.1, 1.0, 8.0]))
def test_every_way_to_the_shares_agrees_with_torch(scores, temperature):
    known = torch.tensor(scores, dtype=torch.float64).div(temperature).softmax(-1)
    parts = taken_apart(scores, temperature)
    assert parts.share == pytest.approx(known.tolist(), abs=1e-15)
    assert parts.naive_share == pytest.approx(known.tolist(), abs=1e-12)
    weights = engine(scores, temperature)["weights"][0]
    assert weights.tolist() == pytest.approx(known.tolist(), abs=1e-15)
    assert parts.naive_total == pytest.approx(math.fsum(math.exp(x) for x in parts.divided))
    assert max(parts.exp) == 1.0


@settings(max_examples=60, deadline=None)
@given(ROWS, st.sampled_from([0.5, 1.0, 3.0]))
def test_the_formula_of_the_derivative_agrees_with_autograd(scores, temperature):
    found = jacobian(scores, temperature)
    known = torch.autograd.functional.jacobian(
        lambda x: (x / temperature).softmax(-1), torch.tensor(scores, dtype=torch.float64)
    )
    known = known * temperature  # by what softmax is given, x / τ
    assert found.apart < 1e-14
    torch.testing.assert_close(found.autograd, known, rtol=0, atol=1e-14)
    assert found.steepest <= softmax.STEEPEST + 1e-15
    assert found.autograd.sum(-1).abs().max() < 1e-14  # a constant changes nothing


def test_the_steepest_derivative_is_reached_at_one_half():
    assert jacobian((3.0, 3.0)).steepest == 0.25
    along = slope((2.0, 1.0, 0.0), 0)
    middle = len(along.moved) // 2
    assert along.share[middle] == pytest.approx(0.5)
    assert max(along.derivative) == along.derivative[middle] == pytest.approx(0.25)
    assert along.moved[middle] == pytest.approx(math.log(math.e + 1))


@pytest.mark.parametrize("constant", [-20.0, -0.1, 7.0, 20.0])
def test_a_constant_changes_nothing(constant):
    found = moved((2.0, 1.0, 0.1, -1.0), constant)
    assert found.after == pytest.approx(found.before, abs=1e-14)
    assert found.difference < 1e-14
    shifted = taken_apart((2.0, 1.0), constant=constant)
    assert shifted.naive == pytest.approx([math.exp(2 + constant), math.exp(1 + constant)])


def test_where_exp_overflows_and_vanishes():
    """Pins the verdict of each number type; the known values are ln of its largest number."""
    found = {dtype: limit(dtype) for dtype in DTYPES}
    assert (found["float16"].fits, found["float16"].breaks) == (11.0859375, 11.09375)
    assert (found["bfloat16"].fits, found["bfloat16"].breaks) == (88.5, 89.0)
    for dtype in ("float32", "float64"):
        assert found[dtype].fits == pytest.approx(math.log(found[dtype].largest), rel=1e-6)
        assert found[dtype].fits < found[dtype].breaks
    for dtype, one in found.items():
        kind = getattr(torch, dtype)
        assert torch.tensor(one.fits, dtype=kind).exp().isfinite()
        assert torch.tensor(one.breaks, dtype=kind).exp().isinf()
        assert torch.tensor(one.vanishes, dtype=kind).exp() == 0
    assert found["float16"].vanishes == pytest.approx(-17.33, abs=0.02)


@pytest.mark.parametrize(
    ("scores", "broken"),
    [
        ((2.0, 1.0), []),
        ((11.05, 0.0), []),
        ((12.0, 0.0), ["float16"]),
        ((11.0, 11.0), ["float16"]),  # each exp fits, their sum does not
        ((-20.0, -21.0), ["float16"]),  # every exp is 0
        ((100.0, 99.0), ["float16", "bfloat16", "float32"]),
        ((710.0, 0.0), list(DTYPES)),
    ],
)
def test_which_types_the_naive_way_breaks_in(scores, broken):
    found = in_types(scores)
    assert [each.limit.dtype for each in found if each.parts.naive_breaks] == broken
    for each in found:
        kind = getattr(torch, each.limit.dtype)
        known = torch.tensor(scores, dtype=kind).softmax(-1).tolist()
        rounding = 4 * torch.finfo(kind).eps
        assert each.parts.share == pytest.approx(known, abs=rounding)


def test_a_score_beyond_the_type_breaks_both_ways():
    half = in_types((70_000.0, 0.0))[0]
    assert half.parts.scores[0] == math.inf
    assert half.parts.naive_breaks
    assert math.isnan(half.error)


def test_temperature_goes_from_one_hot_to_even():
    along, shares = temperatures((2.0, 1.0, 0.0, -1.0))
    assert (along[0], along[-1]) == pytest.approx((softmax.COOLEST, softmax.WARMEST))
    assert shares[0][0] == pytest.approx(1)
    assert all(column[-1] == pytest.approx(0.25, abs=0.02) for column in shares)
    assert [sum(column) for column in zip(*shares, strict=True)] == pytest.approx([1] * len(along))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_code_shown_gives_the_same_numbers(dtype, capsys):
    scores, temperature, constant = (2.0, 1.0, 0.1, -1.5), 0.7, 3.0
    scope: dict = {}
    exec(snippet(scores, temperature, constant, dtype), scope)
    parts = taken_apart(scores, temperature, constant, dtype)
    assert tuple(scope["share"].tolist()) == parts.share
    assert tuple(scope["naive"].tolist()) == parts.naive_share
    known = jacobian(scores, temperature).autograd
    torch.testing.assert_close(scope["J"].double(), known, rtol=0, atol=1e-6)


def test_scores_are_read_as_they_are_written():
    scores = (2.0, -0.1, 1e-7, 1 / 3)
    assert read_scores(write_scores(scores)) == scores
    assert read_scores("2，1；−0.5\t3") == (2.0, 1.0, -0.5, 3.0)


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("2, one", "scores-text"),
        ("2", "scores-count"),
        ("", "scores-count"),
        (" ".join("1" * 13), "scores-count"),
        ("1 inf", "not-a-number"),
        ("1 nan", "not-a-number"),
        ("1 2e5", "score-range"),
    ],
)
def test_scores_that_cannot_be_taken_are_refused(text, id):
    with pytest.raises(InputError) as refused:
        read_scores(text)
    assert refused.value.id == id
