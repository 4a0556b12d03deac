"""The softmax page without a browser: editing scores, tables, number types, the link."""

import json
import math
import re
from base64 import b64decode

import numpy as np
import pytest

from core.experiments.softmax import EXAMPLES, in_types, jacobian, snippet, taken_apart
from core.numbers import write
from parts.softmax_scores import LABELS
from parts.softmax_views import SHOWN
from parts.text import catalog

START = EXAMPLES["start"]


@pytest.fixture
def softmax(app_test):
    return lambda lang="en", **query: app_test("softmax", lang=lang, **query)


def charts(app) -> dict[str, dict]:
    names = ("bars", "warmth", "heatmap", "slope")
    found = [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]
    return dict(zip(names[-len(found) :], found, strict=True))


def numbers(sent) -> np.ndarray:
    """Numbers as Plotly sends them: a list, or packed bytes."""
    if isinstance(sent, list):
        return np.array(sent, dtype=float)
    flat = np.frombuffer(b64decode(sent["bdata"]), dtype=sent["dtype"])
    return flat.reshape([int(n) for n in sent.get("shape", "-1").split(",")])


def tables(app) -> list[list[list[str]]]:
    """All tables, without their heads."""
    found = [each.proto.body for each in app.get("html") if "<table>" in each.proto.body]
    bodies = [each.partition("<tbody>")[2] for each in found]
    return [
        [re.findall("<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall("<tr.*?</tr>", body)]
        for body in bodies
    ]


def column(table, place) -> list[str]:
    return [row[place] for row in table]


def boxes(app) -> list[float]:
    return [box.value for box in app.number_input if box.key.startswith("softmax_x_")]


def errors(app) -> list[str]:
    return [error.value for error in app.error]


def test_it_opens_with_four_scores_and_every_intermediate(softmax):
    app = softmax()
    naive, safe, constant, measured, _limits, _outcomes = tables(app)
    parts = taken_apart(START)
    assert boxes(app) == list(START)
    assert column(naive, 2) == [*map(write, parts.naive), write(parts.naive_total)]
    assert column(naive, 3) == [*map(write, parts.naive_share), "1"]
    assert column(safe, 1)[:4] == [*map(write, parts.shifted)]
    assert column(safe, 3) == [*map(write, parts.share), "1"]
    assert column(constant, 1) == column(constant, 2) == [*map(write, parts.share)]
    assert column(measured, 1)[1] == write(jacobian(START).steepest)
    assert "scores" not in app.query_params


def test_a_box_changes_its_score_and_undo_brings_it_back(softmax):
    app = softmax()
    app.number_input(key="softmax_x_1").set_value(2.0).run()
    assert app.query_params["scores"] == "2, 2, 0.1, -1"
    assert app.text_input(key="softmax_text").value == "2, 2, 0.1, -1"
    shares = column(tables(app)[1], 3)
    assert shares[0] == shares[1] == write(taken_apart((2.0, 2.0, 0.1, -1.0)).share[0])
    app.button(key="softmax_undo").click().run()
    assert boxes(app) == list(START)
    assert "scores" not in app.query_params


def test_a_list_as_text_is_taken(softmax):
    app = softmax()
    app.text_input(key="softmax_text").set_value("3 1, 2；0").run()
    assert boxes(app) == [3.0, 1.0, 2.0, 0.0]
    assert app.query_params["scores"] == "3, 1, 2, 0"


@pytest.mark.parametrize(
    ("text", "said"),
    [("3, x", "“x”"), ("3", "1 scores"), ("1 2e9", "x₂"), ("1 nan", "x₂")],
)
def test_a_list_that_cannot_be_read_gets_a_sentence_and_loses_nothing(softmax, text, said):
    app = softmax()
    app.text_input(key="softmax_text").set_value(text).run()
    assert said in errors(app)[0].replace("\\", "")
    assert app.text_input(key="softmax_text").value == text
    assert boxes(app) == list(START)
    app.text_input(key="softmax_text").set_value("1, 2").run()
    assert errors(app) == []
    assert boxes(app) == [1.0, 2.0]


def test_scores_are_added_and_removed_within_bounds(softmax):
    app = softmax(scores="1,2")
    assert app.button(key="softmax_remove").disabled
    for _press in range(10):
        app.button(key="softmax_add").click().run()
    assert boxes(app) == [1.0, 2.0, *[0.0] * 10]
    assert app.button(key="softmax_add").disabled
    app.button(key="softmax_remove").click().run()
    assert len(boxes(app)) == 11
    app.button(key="softmax_reset").click().run()
    assert boxes(app) == list(START)


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_opens_also_where_exp_gives_out(softmax, example):
    app = softmax(softmax_dtype="float16")
    app.button_group(key="softmax_example").set_value(example).run()
    assert not app.exception
    assert boxes(app) == list(EXAMPLES[example])
    broken = taken_apart(EXAMPLES[example], dtype="float16").naive_breaks
    assert bool(app.warning) == broken


def test_it_opens_in_chinese(softmax):
    app = softmax("zh", scores="12, 11, 10", softmax_dtype="float16", softmax_jacobian="formula")
    assert "float16 里溢出" in app.warning[0].value
    assert "失效: NaN, NaN, NaN" in column(tables(app)[-1], 1)
    assert app.button_group(key="softmax_jacobian").value == "formula"


def test_where_the_naive_way_breaks_is_told(softmax):
    """Pins what a reader sees: float16 gives out at 11.0938, and these scores break in it."""
    app = softmax(scores="12, 11, 10", softmax_constant=0.0, softmax_dtype="float16")
    *_others, limits, outcomes = tables(app)
    assert limits[0] == ["float16", "65504", "11.0938", "−17.34"]
    assert column(outcomes, 1) == ["breaks: NaN, 0, 0", "works", "works", "works"]
    assert "overflows in float16" in app.warning[0].value
    assert "the shares are right" in app.warning[0].value
    assert column(tables(app)[0], 3)[0] == "NaN"
    assert column(tables(app)[1], 3)[0] == write(
        taken_apart((12, 11, 10), dtype="float16").share[0]
    )


def test_a_constant_is_harmless_but_for_exp_straight_away(softmax):
    app = softmax(softmax_constant=20.0)
    constant = tables(app)[2]
    assert column(constant, 1) == column(constant, 2)
    assert all(float(cell.replace("−", "-")) < 1e-15 for cell in column(constant, 3))
    breaks = ["breaks" in cell for cell in column(tables(app)[-1], 1)]
    assert breaks == [each.parts.naive_breaks for each in in_types(START, 1.0, 20.0)]
    assert breaks == [True, False, False, False]


def test_a_score_too_large_for_the_type_is_told(softmax):
    app = softmax(scores="70000, 0", softmax_dtype="float16")
    assert "too large for float16" in app.warning[0].value
    assert column(tables(app)[-1], 2)[0] == "a score is too large for this type"
    assert set(charts(app)) == {"warmth", "heatmap", "slope"}  # nothing to draw as bars


@pytest.mark.parametrize("shown", SHOWN)
def test_the_heatmap_shows_autograd_formula_and_difference(softmax, shown):
    app = softmax(softmax_jacobian=shown, softmax_temperature=0.5)
    drawn = numbers(charts(app)["heatmap"]["data"][0]["z"])
    known = getattr(jacobian(START, 0.5), shown).numpy()
    np.testing.assert_allclose(drawn, known, rtol=1e-6, atol=1e-18)


def test_temperature_reaches_the_tables_the_curve_and_the_code(softmax):
    app = softmax(softmax_temperature=0.5)
    assert column(tables(app)[1], 3)[0] == write(taken_apart(START, 0.5).share[0])
    assert charts(app)["warmth"]["layout"]["shapes"][0]["x0"] == 0.5
    assert snippet(START, 0.5).strip() in [code.value for code in app.code]


def test_the_score_that_moves_can_be_chosen_and_vanish(softmax):
    app = softmax(softmax_moved="4")
    share = charts(app)["slope"]["data"][0]
    assert share["name"] == "p₄"
    x, y = numbers(share["x"]), numbers(share["y"])
    half = math.log(sum(math.exp(x) for x in START[:3]))  # where p₄ is one half
    assert np.interp(half, x, y) == pytest.approx(0.5, abs=1e-3)
    assert [trace["name"] for trace in charts(app)["slope"]["data"]][3:] == ["now"]
    app.number_input(key="softmax_x_3").set_value(-100.0).run()
    assert [trace["name"] for trace in charts(app)["slope"]["data"]][3:] == []  # out of sight
    app.button(key="softmax_remove").click().run()
    assert charts(app)["slope"]["data"][0]["name"] == "p₁"


def test_every_label_has_its_chinese():
    merged = catalog("zh")._catalog
    assert [label for label in (*LABELS.values(), *SHOWN.values()) if label not in merged] == []
