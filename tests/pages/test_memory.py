"""The Memory page without a browser: chains in the link, the builder, refusals, both languages."""

import json

import pytest

from core.memory import walk
from core.memory_chain import read_chain
from core.memory_presets import PRESETS

ATTENTION = PRESETS["attention"]


@pytest.fixture
def memory(app_test):
    return lambda lang="en", **query: app_test("memory", lang=lang, **query)


def told(app, part="manifest") -> dict:
    """What the component with the pictures was given."""
    (strides,) = (e for e in app.get("bidi_component") if e.proto.component_name == "strides")
    return json.loads(json.loads(strides.proto.json)[part])


def chain(app) -> list[str]:
    return [stage["operation"] for stage in told(app)["stages"][1:]] + told(app)["unreached"]


def button(app, label):
    return next(found for found in app.button if found.label == label)


def errors(app) -> list[str]:
    return [error.value for error in app.error]


def test_it_opens_with_the_example_and_says_so_in_the_address(memory):
    app = memory()
    stages = told(app)["stages"]
    assert [stage["strides"] for stage in stages] == [[24, 6, 3, 1], [24, 3, 6, 1], [24, 12, 3, 1]]
    assert app.query_params["shape"] == "1,4,2,3"
    assert app.query_params["chain"] == "transpose(1,2).contiguous()"
    assert app.text_input(key="memory_chain").value == "transpose(1,2).contiguous()"


def test_a_link_opens_what_it_says(memory):
    app = memory(shape="3,4", chain="t().flip(0)", stage=1)
    manifest = told(app)
    assert chain(app) == ["t()", "flip(0)"]
    assert manifest["stage"] == 1
    assert app.query_params["stage"] == "1"
    # flip copies, and keeps the order of dims it finds in memory: here that of the untransposed
    assert manifest["storages"] == [list(range(12)), [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8]]
    assert manifest["stages"][2]["strides"] == [1, 4]


def test_every_fact_of_a_stage_reaches_the_browser(memory):
    app = memory(shape="4,6", chain="slice(1,1,6,2).narrow(0,1,2)")
    stage = told(app)["stages"][-1]
    assert stage == {
        "operation": "narrow(0,1,2)",
        "symbol": "",
        "dims": [],
        "shape": [2, 3],
        "strides": [6, 2],
        "offset": 7,
        "contiguous": False,
        "breaks": [
            {"dim": 1, "stride": 2, "inner": None, "innerStride": 1, "innerSize": 1},
        ],
        "storage": 0,
        "shares": True,
        "startBytes": 28,
        "elements": 6,
        "viewBytes": 24,
        "storageBytes": 96,
        "touched": 6,
    }


def test_the_attention_chain_wears_its_names(memory):
    app = memory()
    app.button_group(key="memory_preset").set_value("attention").run()
    stages = told(app)["stages"]
    assert [stage["symbol"] for stage in stages] == list(ATTENTION.symbols)
    heads = stages[3]["dims"]
    assert [dim["symbol"] for dim in heads] == ["B", "g", "S", "d_k"]
    assert heads[2] == {"symbol": "S", "name": "sequence length", "colour": "#3b82f6"}
    assert stages[1]["dims"][2]["symbol"] == "g·d_k"


def test_the_builder_appends_an_operation_with_its_numbers(memory):
    app = memory(shape="2,3,4")
    app.selectbox(key="memory_next").set_value("narrow").run()
    key = "memory_narrow_2x3x4"
    app.selectbox(key=f"{key}_dim").set_value(1)
    app.number_input(key=f"{key}_start").set_value(1)
    app.number_input(key=f"{key}_length").set_value(2)
    button(app, "Add").click().run()
    assert chain(app) == ["narrow(1,1,2)"]
    assert app.query_params["chain"] == "narrow(1,1,2)"
    assert told(app)["stage"] == 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("view", "view(2,12)"),
        ("reshape", "reshape(2,12)"),
        ("transpose", "transpose(1,2)"),
        ("permute", "permute(2,1,0)"),
        ("expand", "expand(2,2,3,4)"),
        ("narrow", "narrow(2,0,1)"),
        ("slice", "slice(2,0,4,2)"),
        ("flip", "flip(2)"),
        ("contiguous", "contiguous()"),
        ("squeeze", "squeeze()"),
        ("unsqueeze", "unsqueeze(0)"),
        ("repeat_interleave", "repeat_interleave(2,0)"),
        ("matmul", "matmul(4)"),
    ],
)
def test_each_operation_can_be_added_as_its_controls_stand(memory, name, expected):
    app = memory(shape="2,3,4")
    app.selectbox(key="memory_next").set_value(name).run()
    button(app, "Add").click().run()
    assert not errors(app)
    assert chain(app) == [expected]


def test_sizes_that_do_not_fit_are_told_beside_the_builder_and_nothing_changes(memory):
    app = memory(shape="2,3", chain="t()")
    app.selectbox(key="memory_next").set_value("view").run()
    app.text_input(key="memory_view_3x2_sizes").set_value("5")
    button(app, "Add").click().run()
    (error,) = errors(app)
    assert "5 elements" in error.replace("\\", "")
    assert "holds 6" in error
    assert chain(app) == ["t()"]


def test_more_than_one_operation_cannot_slip_in_through_a_number(memory):
    app = memory(shape="2,3")
    app.selectbox(key="memory_next").set_value("view").run()
    app.text_input(key="memory_view_2x3_sizes").set_value("6).view(6")
    button(app, "Add").click().run()
    assert len(errors(app)) == 1
    assert chain(app) == []


def test_a_refused_view_shows_torchs_words_the_stride_and_two_cures(memory):
    app = memory(shape="1,4,2,3", chain="transpose(1,2).view(1,2,12).squeeze()")
    (error,) = errors(app)
    plain = error.replace("\\", "")
    assert "dims 2 and 3" in plain
    assert "1·3 = 3" in plain
    assert "it is 6" in plain
    assert any("view size is not compatible" in code.value for code in app.code)
    assert told(app)["unreached"] == ["view(1,2,12)", "squeeze()"]
    assert [found.label for found in app.button if found.key.startswith("memory_cure")] == [
        "Use `reshape(1,2,12)`: copies 24 elements, 96 bytes",
        "Use `contiguous().view(1,2,12)`: copies 24 elements, 96 bytes",
    ]
    app.button(key="memory_cure_1").click().run()
    assert not errors(app)
    assert chain(app) == ["transpose(1,2)", "contiguous()", "view(1,2,12)", "squeeze()"]


def test_a_refused_operation_can_be_removed(memory):
    app = memory(shape="1,4,2,3", chain="transpose(1,2).view(1,2,12).squeeze()")
    app.button(key="memory_remove").click().run()
    assert chain(app) == ["transpose(1,2)", "squeeze()"]


def test_a_typed_chain_is_taken_and_undone(memory):
    app = memory()
    app.text_input(key="memory_chain").set_value("x.permute(3, 2, 1, 0)").run()
    assert chain(app) == ["permute(3,2,1,0)"]
    assert app.text_input(key="memory_chain").value == "permute(3,2,1,0)"
    app.button(key="memory_undo").click().run()
    assert chain(app) == ["transpose(1,2)", "contiguous()"]
    assert app.button(key="memory_undo").disabled


@pytest.mark.parametrize(
    ("lang", "words"),
    [("en", "cannot be read"), ("zh", "读不懂")],
)
def test_a_chain_that_cannot_be_read_stays_in_its_box_with_one_sentence(memory, lang, words):
    app = memory(lang)
    app.text_input(key="memory_chain").set_value("__import__('os')").run()
    (error,) = errors(app)
    assert words in error.replace("\\", "")
    assert app.text_input(key="memory_chain").value == "__import__('os')"
    assert chain(app) == ["transpose(1,2)", "contiguous()"]
    app.text_input(key="memory_chain").set_value("flip(0)").run()
    assert not errors(app)


def test_a_bad_shape_is_answered_beside_its_box(memory):
    app = memory()
    app.text_input(key="memory_shape").set_value("64, 65").run()
    (error,) = errors(app)
    assert "4160" in error
    assert "4096" in error
    assert told(app)["stages"][0]["shape"] == [1, 4, 2, 3]


def test_a_shape_the_chain_does_not_fit_keeps_the_chain(memory):
    app = memory()
    app.text_input(key="memory_shape").set_value("6").run()
    assert told(app)["unreached"] == ["transpose(1,2)", "contiguous()"]
    assert "it has 1 dims" in errors(app)[0].replace("\\", "")


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(
    "query",
    [
        {"shape": "<b>", "chain": "contiguous()"},
        {"shape": "2,3", "chain": "view(((("},
        {"shape": "2,3", "chain": "transpose(0,7)"},
        {"shape": "99999", "stage": "x"},
        {"shape": "2,3", "stage": "99"},
    ],
)
def test_no_link_breaks_the_page(memory, lang, query):
    app = memory(lang, **query)
    assert len(errors(app)) == (0 if query.get("stage") == "99" else 1)
    assert told(app)["stages"]


def test_two_bad_texts_are_both_kept_and_answered(memory):
    app = memory(shape="<b>", chain="view(((")
    assert len(errors(app)) == 2
    assert app.text_input(key="memory_shape").value == "<b>"
    app.text_input(key="memory_shape").set_value("6").run()
    assert len(errors(app)) == 1
    assert app.text_input(key="memory_chain").value == "view((("
    app.button(key="memory_reset").click().run()
    assert not errors(app)


def test_clear_and_reset(memory):
    app = memory(shape="3,4", chain="t()")
    app.button(key="memory_clear").click().run()
    assert (chain(app), told(app)["stages"][0]["shape"]) == ([], [3, 4])
    assert "chain" not in app.query_params
    app.button(key="memory_reset").click().run()
    assert app.query_params["shape"] == "1,4,2,3"


def test_the_chain_outlives_a_visit_to_another_page(memory):
    app = memory(shape="3,4", chain="t()")
    app.switch_page("memory.py")
    app.query_params.clear()
    app.run()
    assert chain(app) == ["t()"]
    assert app.query_params["shape"] == "3,4"


def test_the_snippet_stands_on_the_page(memory):
    app = memory(shape="3,4", chain="t()")
    assert walk((3, 4), read_chain("t()")).snippet() in [code.value for code in app.code]


@pytest.mark.parametrize(("lang", "title"), [("en", "Memory layout"), ("zh", "内存布局")])
@pytest.mark.parametrize("name", PRESETS)
def test_each_example_opens_with_its_story(memory, root, name, lang, title):
    app = memory(lang)
    if name != "transpose":
        app.button_group(key="memory_preset").set_value(name).run()
    story = (root / f"assets/text/{lang}/memory/{name}.md").read_text("utf-8").strip()
    assert story in [markdown.value for markdown in app.markdown]
    assert app.title[0].value == title
    assert len(told(app)["stages"]) + len(told(app)["unreached"]) == len(PRESETS[name].chain) + 1


def test_the_component_speaks_chinese(memory):
    words = told(memory("zh"), "text")
    english = told(memory("en"), "text")
    assert words.keys() == english.keys()
    assert words["play"] == "播放"
    assert [key for key in words if words[key] == english[key]] == []
