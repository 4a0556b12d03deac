"""The verdict of each claim, pinned by what its experiment measures."""

import contextlib
import io

import pytest
import torch

from core.experiments.claims import CLAIMS, measure, script


@pytest.mark.parametrize("name", CLAIMS)
def test_the_code_shown_measures_the_same_numbers(name):
    changed = tuple((one.name, type(one.first)(one.least)) for one in CLAIMS[name].asked[:1])
    names: dict = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(script(name, changed), names)
    assert names["found"] == measure(name, changed)
    assert printed.getvalue().strip() == str(measure(name, changed))


def test_one_matrix_makes_scores_symmetric_and_self_preference_needs_equal_lengths():
    seeds = range(40)
    free = [measure("shared", (("seed", seed),)) for seed in seeds]
    equal = [measure("shared", (("equal", True), ("seed", seed))) for seed in seeds]
    assert max(one["asymmetry"] for one in free) < 1e-5
    assert not all(one["holds"] for one in free)
    assert all(one["holds"] for one in equal)
    assert free[0]["beaten"] == 2.0


def test_matmul_takes_any_strides_and_view_does_not():
    for rows in range(2, 6):
        found = measure("matmul", (("rows", rows),))
        assert found["difference"] < 1e-6
        assert not found["contiguous"]
        assert "view size is not compatible" in found["view"]


def test_reshape_copies_after_a_transpose_unless_there_is_one_row_or_column():
    assert measure("reshape")["turned_copies"]
    assert measure("reshape")["bytes"] == 3 * 4 * 4
    assert measure("reshape", (("rows", 1),))["holds"]
    assert measure("reshape", (("columns", 1),))["holds"]


def test_a_dimension_of_size_one_is_exempt_from_the_rule():
    found = measure("contiguity", (("stride", 5),))
    assert (found["strides"], found["wanted"], found["contiguous"]) == ("(5, 4, 1)", 12, True)


def test_minus_1e9_leaks_blurs_and_overflows():
    assert measure("fill")["leak"] == 1.0
    assert measure("fill", (("keys", 8),))["blind"] == 0.125
    assert "overflow" in measure("fill")["half"]
    assert measure("fill", (("score", -5e8),))["leak"] == 0.0


def test_entropy_and_gradient_shrink_without_the_factor_unless_w_q_takes_it_in():
    small, large = (measure("unscaled", (("d_k", d),)) for d in (16, 512))
    assert large["entropy_bare"] < 0.5 * small["entropy_bare"] < 0.5 * small["entropy_scaled"]
    assert large["gradient_bare"] < 0.2 * large["gradient_scaled"]
    assert large["entropy_t5"] == pytest.approx(large["entropy_scaled"], rel=1e-3)
    assert large["gradient_t5"] == pytest.approx(large["gradient_scaled"], rel=1e-3)


def test_derivatives_stay_below_a_quarter_and_vanish():
    for gain in (1.0, 5.0, 60.0):
        assert measure("bounded", (("gain", gain),))["steep"] <= 0.25
    assert measure("bounded")["steep"] < 1e-4


def test_any_width_fits_through_w_o():
    for d_k in range(1, 9):
        assert measure("widths", (("d_k", d_k),))["fits"]


def test_without_the_transpose_no_token_hears_another():
    found = measure("across", (("S", 5), ("h", 3)))
    assert found["grid"] == "(5, 3, 3)"
    assert found["heard"] == 0.0
    assert found["difference"] > 0.1


@pytest.mark.parametrize(("spread", "within"), [(1.0, 0.0), (2.0, 0.0), (1.0, 0.3), (0.5, 0.3)])
def test_the_variance_is_what_theory_predicts_and_one_only_under_its_assumptions(spread, within):
    found = measure("variance", (("spread", spread), ("within", within)))
    assert found["measured"] == pytest.approx(found["predicted"], rel=0.08)
    assert found["holds"] == (spread == 1.0 and within == 0.0)
    assert torch.isfinite(torch.tensor(found["measured"]))
