"""Three roles: symmetry, self-preference and its condition, the counterexample, the spaces."""

import math

import pytest
import torch

from core import InputError
from core.experiments import roles
from core.experiments.roles import (
    DRAWS,
    census,
    census_snippet,
    duel,
    keys,
    measure,
    moved,
    predicted_asymmetry,
    predicted_move,
    scores,
    setting,
    snippet,
    space_snippet,
    turned,
)

CAT, MAO = ("the", "cat", "sat", "on", "the", "mat"), tuple("猫坐在垫子上")
CASES = [(tokens, d, seed) for tokens in (CAT, MAO) for d in (2, 3) for seed in (0, 1)]


def test_measures_are_what_they_say():
    found = measure(torch.tensor([[1.0, 3.0], [1.0, 2.0]]))
    assert found.asymmetry == pytest.approx(math.sqrt(8) / math.sqrt(15))
    assert (found.own, found.rows) == (1, 2)
    assert measure(torch.tensor([[1.0, 1.0], [1.0, 1.0]])).own == 2  # ties count


@pytest.mark.parametrize("case", CASES, ids=str)
def test_scores_of_one_vector_are_symmetric_and_those_of_two_are_not(case):
    config = setting(*case)
    assert measure(scores(config, "direct")).asymmetry == 0
    assert measure(scores(config, "shared")).asymmetry == 0
    assert measure(scores(config, "separate")).asymmetry > 0.3
    X = roles.whole(config)["X"]
    assert torch.allclose(scores(config, "direct"), X @ X.T, atol=1e-5)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_verdict_false_in_general_true_if_all_keys_have_equal_length(case):
    found = census(setting(*case))
    assert found["shared"].every < 0.1 * DRAWS
    assert found["equal"].every == DRAWS
    assert measure(scores(setting(*case), "equal")).own == len(case[0])
    assert found["separate"].own < found["shared"].own
    assert found["separate"].every < 0.01 * DRAWS


@pytest.mark.parametrize("case", CASES, ids=str)
def test_asymmetry_over_many_draws_is_as_predicted(case):
    config = setting(*case)
    measured = census(config)["separate"].asymmetry
    assert measured == pytest.approx(predicted_asymmetry(config), rel=0.05)


def test_a_longer_vector_in_the_same_direction_beats_the_own_one():
    found = duel(2.0, 0.0)
    assert (found.own, found.other) == (1.0, 2.0)
    assert found.beaten
    assert found.weights[1] == pytest.approx(1 / (1 + math.exp(-1 / math.sqrt(2))))
    assert found.equal_other == pytest.approx(1)
    assert not duel(2.0, 60.0).beaten  # 2·cos 60° = 1
    assert not duel(0.9, 0.0).beaten
    for degrees in range(0, 181, 20):
        assert duel(3.0, degrees).equal_other <= 1 + 1e-6


def test_angle_length_and_dot_product_agree_with_the_engine():
    config = setting(MAO, 3)
    for key in keys(config, 1):
        assert key.dot == pytest.approx(key.query_length * key.length * key.cosine, abs=1e-5)
        assert math.cos(math.radians(key.degrees)) == pytest.approx(key.cosine)
    assert sum(key.weight for key in keys(config, 1)) == pytest.approx(1)


@pytest.mark.parametrize("matrix", ["W_Q", "W_K", "W_V"])
def test_one_weight_moves_its_own_space_along_one_axis_as_predicted(matrix):
    before = setting(CAT, 2)
    after = turned(before, matrix, 2, 1, -1.5)
    assert moved(before, after, matrix[-1]) == pytest.approx(
        predicted_move(before, 2, -1.5), rel=1e-5
    )
    difference = roles.whole(after)[matrix[-1]] - roles.whole(before)[matrix[-1]]
    assert torch.equal(difference[:, 0], torch.zeros(6))
    assert torch.allclose(difference[:, 1], -1.5 * roles.whole(before)["X"][:, 2], atol=1e-5)
    assert [moved(before, after, s) for s in "QKV" if s != matrix[-1]] == [0, 0]
    assert turned(before, matrix, 2, 1, 0.0) == before


def test_the_code_shown_computes_the_same(capsys):
    config = turned(setting(MAO, 2, 3), "W_K", 1, 0, 0.7)
    scope: dict = {}
    exec(snippet(config), scope)
    for name, way in (("x·x", "direct"), ("q·k", "separate")):
        found = measure(scores(config, way))
        assert scope["found"][name] == (pytest.approx(found.asymmetry, abs=1e-6), found.own)
    exec(census_snippet(config), scope)
    counted = census(config)
    assert scope["every"] == {
        "W_Q = W_K": counted["shared"].every,
        "equal length": counted["equal"].every,
        "W_Q ≠ W_K": counted["separate"].every,
    }
    exec(space_snippet(config, 4), scope)
    whole = roles.whole(config)
    assert torch.allclose(scope["weights"], whole["weights"][4], atol=1e-6)
    assert torch.allclose(scope["output"], whole["output"][4], atol=1e-6)
    assert scope["cosine"].tolist() == pytest.approx([k.cosine for k in keys(config, 4)], abs=1e-5)


@pytest.mark.parametrize("arguments", [((), 2), (("a",) * 13, 2), (("a",), 4)])
def test_what_does_not_fit_is_refused(arguments):
    with pytest.raises(InputError):
        setting(*arguments)
