"""The Heads page without a browser: every part in both languages, and that numbers are torch's."""

import base64
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

from core import AttentionConfig, heads, run
from core.numbers import write
from parts.microscope import unpack

WAYS = ("split", "merge", "across")
VIEWS = [{"part": part} for part in ("split", "product", "sharing", "together", "width")]
VIEWS += [{"way": way} for way in WAYS]
NAMES = ["-".join(*view.items()) for view in VIEWS]


class _Tables(HTMLParser):
    """Rows of text of every table, by its data-table name."""

    def __init__(self):
        super().__init__()
        self.found, self.name, self.cell = [], None, None

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if "data-table" in attrs:
            self.found.append((attrs["data-table"], []))
        elif tag == "tr":
            self.found[-1][1].append([])
        elif tag in ("td", "th"):
            self.cell = ""

    def handle_data(self, data):
        if self.cell is not None:
            self.cell += data

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.found[-1][1][-1].append(self.cell)
            self.cell = None


def tables(app, name: str) -> list[list[list[str]]]:
    """Every table of that name, as rows of cells, names of rows and columns included."""
    parser = _Tables()
    for element in app.get("html"):
        parser.feed(element.proto.body)
    return [rows for found, rows in parser.found if found == name]


def words(app) -> str:
    """All that stands on the page, as one text without code and formulas."""
    shown = [
        element.value for kind in ("markdown", "caption", "title") for element in app.get(kind)
    ]
    drawn = [element.proto.body for element in app.get("html")]
    shown += [re.sub(r"<[^>]*>", " ", html) for html in drawn if "data-table" in html]
    return re.sub(r"`[^`]*`|\$[^$]*\$", "", "\n".join(shown))


def body(rows) -> list[list[str]]:
    return [row[1:] for row in rows[1:]]


def numbers(packed: dict) -> torch.Tensor:
    """A matrix out of a Plotly figure."""
    raw = np.frombuffer(base64.b64decode(packed["bdata"]), packed["dtype"])
    return torch.from_numpy(raw.reshape([int(n) for n in packed["shape"].split(",")]).copy())


def manifest(app) -> dict:
    (component,) = [
        c for c in app.get("bidi_component") if c.proto.component_name.endswith("scope")
    ]
    return unpack(component.proto.bytes)[0]["manifest"]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("view", VIEWS, ids=NAMES)
def test_every_part_opens_in_both_languages(app_test, view, lang):
    app = app_test("heads", lang=lang, **view)
    assert not app.error
    assert len(app.main.markdown) >= 2
    assert "{" not in words(app)


@pytest.mark.parametrize("view", VIEWS, ids=NAMES)
def test_no_english_is_left_in_the_chinese_page(app_test, view):
    english, chinese = (app_test("heads", lang=lang, **view) for lang in ("en", "zh"))
    sentence = re.compile(r"\b(the|and|of|with|each|columns?|rows?|heads?)\b", re.IGNORECASE)
    assert sentence.search(words(english))
    assert not sentence.search(words(chinese))


def test_the_split_shows_coordinates_and_one_colour_per_head(app_test):
    app = app_test("heads")
    steps = {step["symbol"]: step for step in manifest(app)["steps"]}
    assert list(steps) == [
        "Q", "Q_split", "Q_heads", "weights", "output", "swapped", "contiguous", "merged", "W_O",
        "projected",
    ]  # fmt: skip
    assert steps["Q"]["shape"] == [4, 8]
    assert steps["Q_heads"]["display"][1][0] == ["1,5", "1,6", "1,7", "1,8"]
    assert {steps[s]["tint"] for s in heads.MOVED} == {"h"}
    assert "display" not in steps["projected"]


def test_a_batch_gives_the_tensors_a_leading_axis(app_test):
    app = app_test("heads", heads_B=2, heads_h=4)
    shapes = {step["symbol"]: step["shape"] for step in manifest(app)["steps"]}
    assert shapes["Q"] == [2, 4, 8]
    assert shapes["Q_heads"] == [2, 4, 4, 2]
    assert ["contiguous", "B × S × h × d_k", "(2, 4, 4, 2)", "(32, 8, 2, 1)"] in [
        row[:4] for row in tables(app, "steps")[0]
    ]


def test_the_address_names_the_step(app_test):
    app = app_test("heads", move="contiguous")
    assert app.code[0].value == "contiguous = swapped.contiguous()"
    assert tables(app, "steps")[0][7][-1] == "128 bytes, new"


@pytest.mark.parametrize("way", WAYS)
def test_a_wrong_way_shows_both_lines_and_the_measured_difference(app_test, way):
    app = app_test("heads", way=way)
    assert [code.value for code in app.code] == list(heads.CODE[way])
    trace = run(AttentionConfig(S=4, H=8, h=2, B=1, project=True, gain=2.0))
    gap = (heads.route(trace, way).projected - trace["projected"]).abs()[0].amax(-1)
    assert body(tables(app, "difference")[0]) == [[write(x, 3) for x in gap.tolist()]]
    assert f"**{write(gap.max(), 3)}**" in words(app)


def test_a_split_without_transpose_puts_whole_tokens_into_a_head(app_test):
    app = app_test("heads", way="split")
    (right,), (wrong,) = tables(app, "counts-right"), tables(app, "counts-wrong")
    assert body(right) == [["4"] * 4] * 2
    assert body(wrong) == [["8", "8", "0", "0"], ["0", "0", "8", "8"]]
    assert [row[1] for row in tables(app, "origins")[1]] == [
        "1", "1,1", "1,5", "2,1", "2,5", "3,1", "3,5", "4,1", "4,5",
    ]  # fmt: skip


def test_across_heads_only_the_changed_row_moves(app_test):
    app = app_test("heads", way="across")
    moved = body(tables(app, "influence-across")[0])
    assert [[cell != "0" for cell in row] for row in moved] == torch.eye(4).bool().tolist()
    assert "(1, 4, 2, 2)" in words(app)


def test_one_head_cannot_be_confused_with_another(app_test):
    for way in WAYS[:2]:
        app = app_test("heads", way=way, heads_h=1)
        assert body(tables(app, "difference")[0]) == [["0"] * 4]
        assert "the two results are equal" in words(app)


def test_small_products_stand_beside_the_big_one(app_test):
    app = app_test("heads", part="product", small="1")
    trace = run(AttentionConfig(S=4, H=8, h=2, project=True, gain=2.0))
    shown = body(tables(app, "Q_small")[0])
    product = trace["X"] @ trace["W_Q"][:, 4:]
    assert shown == [[write(x, 3) for x in row] for row in product.tolist()]
    assert [row[4:] for row in body(tables(app, "Q")[0])] == shown


def test_the_sum_over_heads_is_the_engines_row(app_test):
    app = app_test("heads", part="together", row="2")
    rows = tables(app, "sum")[0]
    assert [row[0] for row in rows[1:]] == ["head 1", "head 2", "sum", "projected"]
    tokens = (("the", "cat", "sat", "on", "the", "mat"),)
    config = AttentionConfig(H=8, h=2, tokens=tokens, project=True, gain=2.0)
    found = heads.contributions(run(config)).parts[:, 2]
    assert body(rows)[:2] == [[write(x, 3) for x in part] for part in found.tolist()]
    assert body(rows)[2] == [write(x, 3) for x in found.sum(0).tolist()]
    assert body(rows)[3] == [write(x, 3) for x in run(config)["projected"][2].tolist()]
    assert "“sat”" in words(app)
    (chart,) = app.get("plotly_chart")
    shown = json.loads(chart.proto.spec)
    weights = run(config)["weights"]
    for head, picture in zip(weights, shown["data"], strict=True):
        assert torch.equal(numbers(picture["z"]), head)


def test_shared_heads_with_their_map_strides_and_bill(app_test):
    app = app_test("heads", part="sharing", share_g="4")
    queries, shared = tables(app, "map")[0]
    assert queries[1:] == [f"q{i}" for i in range(1, 13)]
    assert shared[1:] == ["kv1", "kv2", "kv3", "kv4"]
    expand = tables(app, "repeats")[0][2]
    assert expand[1:] == ["(4, 3, 16, 64)", "(1024, 0, 64, 1)", "8,192", "view of K"]
    chosen = next(row for row in tables(app, "budgets")[0] if row[0] == "4")
    assert chosen[1:6] == ["GQA", "1,179,648", "393,216", "1,572,864", "1,024"]
    assert "147,456" in words(app)


def test_a_model_sets_its_sizes(app_test):
    app = app_test("heads", part="sharing")
    app.pills(key="share_model").set_value("transformer").run()
    assert [n.value for n in app.number_input] == [512, 8, 64]
    assert app.pills(key="share_model").value == "transformer"


def test_widths_that_do_not_multiply_to_H_run(app_test):
    app = app_test("heads", part="width")
    shapes = {row[0]: row[2] for row in tables(app, "shapes")[0]}
    assert (shapes["merged"], shapes["W_O"], shapes["projected"]) == (
        "(4, 2048)", "(2048, 512)", "(4, 512)",
    )  # fmt: skip
    assert "shape '[4, 512]' is invalid for input of size 8192" in app.code[0].value
    app = app_test("heads", part="width", width_H=6, width_h=2, width_d=3)
    assert not app.code


@pytest.mark.parametrize(
    ("lang", "said"),
    [("en", "H = 8 cannot be split into h = 3 heads"), ("zh", "H = 8")],
)
def test_sizes_that_do_not_fit_are_answered_in_one_sentence(app_test, lang, said):
    app = app_test("heads", lang=lang, heads_h=3)
    (error,) = app.error
    assert said in error.value.replace("\\", "")
    app.number_input(key="heads_h").set_value(4).run()
    assert not app.error
    assert app.number_input(key="heads_H").value == 8


def test_an_empty_sentence_is_answered(app_test):
    app = app_test("heads", part="together", heads_sentence="  ")
    assert [error.value for error in app.error] == ["Write at least one word."]


def test_a_link_that_says_nonsense_opens_the_defaults(app_test):
    app = app_test("heads", part="nowhere", way="7", heads_S="x", heads_H=9999, move="?")
    assert not app.exception
    assert app.segmented_control(key="part").value == "split"
    assert app.number_input(key="heads_S").value == 4


def test_choices_outlive_a_visit_to_another_part(app_test):
    app = app_test("heads", way="merge", heads_S=3)
    app.segmented_control(key="part").set_value("sharing").run()
    assert app.query_params["part"] in ("sharing", ["sharing"])
    app.segmented_control(key="part").set_value("split").run()
    assert app.segmented_control(key="way").value == "merge"
    assert app.number_input(key="heads_S").value == 3
    assert "part" not in app.query_params
