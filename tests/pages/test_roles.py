"""The page on three roles without a browser: verdicts, measured numbers, links, bad input."""

import json

import numpy as np
import pytest

from core.experiments import roles
from core.inputs import split_sentence
from core.numbers import write

SENTENCE = {"en": "the cat sat on the mat", "zh": "猫坐在垫子上"}


def text(app) -> str:
    found = (*app.markdown, *app.caption, *app.warning, *app.success)
    return "\n".join(str(element.value) for element in found)


def tables(app) -> str:
    return "\n".join(element.proto.body for element in app.get("html"))


def drawn(app, place: int) -> list[dict]:
    """The traces of a chart, by its place on the page."""
    return json.loads(app.get("plotly_chart")[place].proto.spec)["data"]


def numbers(data) -> list:
    if isinstance(data, dict):
        import base64

        flat = np.frombuffer(base64.b64decode(data["bdata"]), data["dtype"])
        return flat.reshape([int(n) for n in data.get("shape", str(flat.size)).split(",")]).tolist()
    return data


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_opens_with_both_maps_and_the_measured_numbers(app_test, lang):
    app = app_test("roles", lang=lang)
    config = roles.setting(split_sentence(SENTENCE[lang]))
    for place, way in enumerate(("direct", "separate", "shared")):
        shown = np.float32(numbers(drawn(app, place)[0]["z"]))
        assert np.allclose(shown, roles.scores(config, way).numpy()), way
    separate = roles.measure(roles.scores(config, "separate"))
    assert write(separate.asymmetry, 3) in tables(app)
    assert write(roles.predicted_asymmetry(config), 3) in text(app)
    assert not app.query_params.get("sentence")


def test_the_verdict_turns_with_the_switch(app_test):
    app = app_test("roles")
    assert "False in general" in app.warning[0].value
    assert not app.success
    app.toggle(key="roles_equal").set_value(True).run()
    assert "True under this condition" in app.success[0].value
    assert "2,000 of 2,000" in app.success[0].value


def test_the_duel_is_won_by_length_and_lost_by_angle(app_test):
    app = app_test("roles", roles_length=2.0, roles_angle=0)
    assert "2 · cos 0° = **2**: x₁ prefers x₂" in text(app)
    app.slider(key="roles_angle").set_value(90).run()
    assert "does not beat x₁" in text(app)


def test_one_weight_moves_one_space(app_test):
    app = app_test("roles")
    before = [np.float64(numbers(drawn(app, place)[0]["x"])) for place in (4, 5, 6)]
    app.segmented_control(key="roles_W").set_value("W_V").run()
    app.slider(key="roles_by").set_value(2.0).run()
    after = [np.float64(numbers(drawn(app, place)[0]["x"])) for place in (4, 5, 6)]
    stayed = [np.array_equal(*both, equal_nan=True) for both in zip(before, after, strict=True)]
    assert stayed == [True, True, False]
    assert "Q, K moved by 0" in text(app)
    config = roles.setting(split_sentence(SENTENCE["en"]))
    assert f"{write(roles.predicted_move(config, 0, 2.0), 3)} was predicted" in text(app)


def test_a_link_brings_sentence_width_and_query(app_test):
    app = app_test("roles", sentence="one two three", roles_d=3, roles_query=2, roles_seed=7)
    config = roles.setting(("one", "two", "three"), 3, 7)
    assert drawn(app, 4)[0]["type"] == "scatter3d"
    assert "query of three" in tables(app)
    assert write(roles.keys(config, 2)[1].dot, 3) in tables(app)


@pytest.mark.parametrize(("lang", "said"), [("en", "The sentence is empty"), ("zh", "句子是空的")])
def test_an_empty_sentence_is_refused_beside_it(app_test, lang, said):
    app = app_test("roles", lang=lang)
    app.text_input(key="roles_sentence").set_value(" ").run()
    assert said in app.error[0].value
    app.text_input(key="roles_sentence").set_value("a " * 13).run()
    assert "12" in app.error[0].value
    app.text_input(key="roles_sentence").set_value("a b").run()
    assert not app.error


@pytest.mark.parametrize(
    "query",
    [{"roles_d": 9}, {"roles_query": 99}, {"roles_by": "x"}, {"sentence": "a"},
     {"sentence": "<img src=x> **b** [a](b)"}],
)  # fmt: skip
def test_a_broken_link_still_opens(app_test, query):
    app = app_test("roles", **query)
    assert not app.error
    assert "<img" not in text(app).replace("\\<", "")
    assert "<img" not in tables(app)
