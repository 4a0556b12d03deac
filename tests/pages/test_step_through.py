"""The step-through page without a browser: what it sends, what it keeps, what it answers."""

import re
from html import escape

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

import core
from core import AttentionConfig, InputError
from core.config import _write as packed
from core.inputs import EXAMPLE
from parts.editing import parse_block
from parts.microscope import unpack


def sent(app: AppTest) -> tuple[dict, np.ndarray]:
    """Manifest and values that the microscope was given."""
    found = [e for e in app.get("bidi_component") if e.proto.component_name == "qkv_microscope"]
    header, values = unpack(found[0].proto.bytes)
    return header, values


def shown(app: AppTest, symbol: str) -> np.ndarray:
    """The numbers of a step as the browser would read them."""
    header, values = sent(app)
    step = next(s for s in header["manifest"]["steps"] if s["symbol"] == symbol)
    places = sum(
        np.arange(n).reshape([-1] + [1] * (len(step["shape"]) - axis - 1)) * stride
        for axis, (n, stride) in enumerate(
            zip(step["shape"], step["tensor"]["strides"], strict=True)
        )
    )
    return values[step["tensor"]["offset"] + places]


def slider(app: AppTest, field: str):
    return next(s for s in app.sidebar.select_slider if s.key == f"w_{field}")


def test_opens_on_the_example_with_every_number_of_the_engine(app_test):
    app = app_test()
    assert np.array_equal(shown(app, "X"), np.float32(EXAMPLE))
    trace = core.run(core.preset("example"))
    for step in trace.steps:
        assert np.array_equal(shown(app, step.symbol), step.tensor.numpy()), step.symbol


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_slider_changes_sizes_numbers_and_link(app_test, lang):
    app = app_test(lang=lang)
    slider(app, "S").set_value(6).run()
    assert shown(app, "scores").shape == (6, 6)
    assert app.query_params["S"] == "6"
    assert "x" not in app.query_params  # the example has four rows: these are seeded
    wanted = core.run(AttentionConfig(S=6, H=6, d_k=3, gain=2.0))["weights"]
    assert np.array_equal(shown(app, "weights"), wanted.numpy())


def test_undo_and_reset_bring_numbers_back(app_test):
    app = app_test()
    before = shown(app, "output")
    slider(app, "H").set_value(8).run()
    assert not np.array_equal(shown(app, "output"), before)
    app.button(key="w_undo").click().run()
    assert np.array_equal(shown(app, "output"), before)
    slider(app, "H").set_value(8).run()
    app.button(key="w_reset").click().run()
    assert np.array_equal(shown(app, "output"), before)


def test_a_sentence_gives_a_row_per_token_and_equal_rows_to_equal_tokens(app_test):
    app = app_test()
    app.sidebar.get("button_group")[1].set_value("sentence").run()
    app.sidebar.text_input(key="w_tokens").set_value("the cat the 猫坐").run()
    header, _values = sent(app)
    assert header["manifest"]["labels"]["S"] == ["the", "cat", "the", "猫", "坐"]
    X = shown(app, "X")
    assert np.array_equal(X[0], X[2])
    assert not np.array_equal(X[0], X[1])


def test_sentences_of_different_length_make_a_padded_batch(app_test):
    app = app_test(tokens="", S=4)
    app.sidebar.get("button_group")[1].set_value("sentence").run()
    app.sidebar.text_input(key="w_tokens").set_value("a b c | d").run()
    weights = shown(app, "weights")
    assert weights.shape == (2, 3, 3)
    assert np.array_equal(weights[1], np.tile(np.float32([1, 0, 0]), (3, 1)))
    assert np.allclose(weights[0].sum(-1), 1)


def test_what_does_not_fit_is_said_beside_the_control_and_changes_nothing(app_test):
    app = app_test(S=4, H=10, h=2)
    before = shown(app, "output")
    slider(app, "h").set_value(5).run()  # 5 divides 10
    assert not app.error
    slider(app, "H").set_value(16).run()  # and 16 is not divided by 5
    assert "16" in app.error[0].value
    assert "5" in app.error[0].value
    assert shown(app, "Q").shape == (4, 10)
    slider(app, "h").set_value(2).run()
    assert not app.error
    assert np.array_equal(shown(app, "output"), before)


def test_a_link_brings_edits_step_cell_and_head(app_test):
    config = AttentionConfig(S=3, H=4, h=2, causal=True, edits=(("X", (0, 1), 0.25),))
    app = app_test(**config.to_url(), step="weights", at="weights:1,2,0", head=1)
    header, _values = sent(app)
    steps = header["manifest"]["steps"]
    assert steps[header["step"]]["symbol"] == "weights"
    assert header["manifest"]["pick"] == {"h": 1}
    assert shown(app, "X")[0, 1] == np.float32(0.25)
    text = core.run(config).explain("weights", (1, 2, 0)).text
    assert any(escape(text) in html.proto.body for html in app.get("html"))


@pytest.mark.parametrize(
    "query",
    [
        {"S": "x"},
        {"S": "-3"},
        {"H": "10", "h": "3"},
        {"edits": "%%%"},
        {"edits": packed("edits", (("X", (99, 0), 1.0),))},
        {"edits": packed("edits", (("Z", (0, 0), 1.0),))},
        {"step": "nothing", "at": "Q:9,9", "head": "x", "view": "?", "panel": "<b>"},
        {"S": "4096", "h": "64", "H": "4096"},
    ],
)
def test_a_broken_link_still_opens(app_test, query):
    app = app_test(**query)
    assert not app.exception
    assert shown(app, "weights").shape[-2:] == (4, 4) or "S" in query


def test_gradient_view_shows_autograd_of_the_clicked_element(app_test):
    app = app_test(S=3, H=4, view="gradient", at="output:1,2")
    header, _values = sent(app)
    assert header["manifest"]["target"] == {"symbol": "output", "index": [1, 2]}
    wanted = core.run(AttentionConfig(S=3, H=4)).gradient("output", (1, 2))
    for symbol in ("X", "W_Q", "scores", "weights", "V"):
        assert np.array_equal(shown(app, symbol), wanted[symbol].numpy()), symbol


def test_typed_text_is_never_markup(app_test):
    app = app_test()
    app.sidebar.get("button_group")[1].set_value("sentence").run()
    app.sidebar.text_input(key="w_tokens").set_value("<img/src=x> **b** $x$ {{S}}").run()
    header, _values = sent(app)
    assert header["manifest"]["labels"]["S"] == ["<img/src=x>", "**b**", "$x$", "{{S}}"]
    assert not any("<img" in str(element.value) for element in (*app.markdown, *app.caption))


def test_a_pasted_block_is_read_or_refused_with_both_sizes():
    assert parse_block("1\t−2\n3; 4", (2, 2), "X").tolist() == [[1, -2], [3, 4]]
    with pytest.raises(InputError) as refused:
        parse_block("1 2 3\n4 5 6", (4, 6), "X")
    assert "4 × 6" in str(refused.value)
    assert "2 × 3" in str(refused.value)
    with pytest.raises(InputError):
        parse_block("1 two", (1, 2), "X")


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("panel", ["sheet", "edit", "share"])
def test_panels_open_from_the_link(app_test, panel, lang):
    app = app_test(lang=lang, panel=panel, S=3, H=4, h=2, project=1, causal=1)
    assert not app.exception
    assert not app.error


def test_every_preset_opens_and_keeps_its_payload_below_three_megabytes(app_test):
    for name, config in core.PRESETS.items():
        app = app_test(**config.to_url())
        header, values = sent(app)
        assert values.nbytes < 3e6, name
        assert len(header["manifest"]["steps"]) == len(core.run(config).steps)


def test_a_large_trace_sends_the_chosen_head_exactly(app_test):
    config = core.preset("gpt2-small")
    app = app_test(**config.to_url(), head=5)
    weights = core.run(config)["weights"]
    assert torch.equal(torch.from_numpy(shown(app, "weights")[5]), weights[5])


def test_rotary_positions_are_a_choice_and_in_the_link(app_test):
    app = app_test(S=3, H=8, h=2)
    app.sidebar.button_group(key="w_rotary").set_value("interleaved").run()
    assert app.query_params["rotary"] == "interleaved"
    wanted = core.run(AttentionConfig(S=3, H=8, h=2, rotary="interleaved"))
    assert np.array_equal(shown(app, "K_rotated"), wanted["K_rotated"].numpy())
    again = app_test(S=3, H=8, h=2, rotary="interleaved")
    assert np.array_equal(shown(again, "weights"), wanted["weights"].numpy())
    # What cannot be turned is refused beside the control, and the page stays as it was.
    odd = app_test(S=3, H=6, h=2)
    odd.sidebar.button_group(key="w_rotary").set_value("halves").run()
    assert "d_k = 3 is odd" in odd.error[0].value.replace("\\", "")
    assert "rotary" not in odd.query_params
    app.sidebar.toggle(key="w_cross").set_value(True).run()
    assert "turn off cross-attention" in app.error[0].value.replace("\\", "")
    assert app.query_params["rotary"] == "interleaved"


def test_angles_and_weights_have_no_batch_axis_of_their_own(app_test):
    app = app_test(S=3, H=4, rotary="halves")
    table = next(h.proto.body for h in app.get("html") if "Shapes, step by step" in h.proto.body)
    rows = dict(re.findall(r'<th scope="row">(\w+)</th>.*?<td>(\([^<]*\))</td></tr>', table))
    assert rows["cos"] == rows["sin"] == "(3, 4)"
    assert rows["W_K"] == "(4, 4)"
    assert rows["K_rotated"] == "(B, 3, 4)"


@pytest.mark.parametrize("block", ["nan 1", "1e39 1", "one two", "1 2 3"])
def test_a_refused_block_stays_where_it_was_pasted(app_test, block):
    app = app_test(panel="edit", S=1, H=2)
    app.text_area(key="w_paste").set_value(block).run()
    assert len(app.error) == 1
    assert app.text_area(key="w_paste").value == block
    app.text_area(key="w_paste").set_value("3 4").run()
    assert not app.error
    assert app.text_area(key="w_paste").value == ""


@pytest.mark.parametrize(
    "text",
    [
        "1,-2,\n3,4,",
        "[[ 1. -2.]\n [ 3.  4.]]",
        str(torch.tensor([[1.0, -2], [3, 4]])),
        "1，-2；\n3，4",
    ],
)
def test_a_printed_tensor_is_read_as_a_block(text):
    assert parse_block(text, (2, 2), "X").tolist() == [[1, -2], [3, 4]]


def test_a_refused_block_is_quoted_in_short():
    with pytest.raises(InputError) as refused:
        parse_block("1 " + "x" * 5000, (1, 2), "X")
    assert len(str(refused.value)) < 150


def test_what_is_too_long_for_the_link_is_said(app_test):
    app = app_test(panel="edit", S=2, H=128, w_matrix="W_Q")
    assert not app.warning
    block = "\n".join(" ".join(f"{i}.{j:03}123456" for j in range(128)) for i in range(128))
    app.text_area(key="w_paste").set_value(block).run()
    assert not app.exception
    assert "edits" not in app.query_params
    assert ["edits" in warning.value for warning in app.warning] == [True]


def test_each_bad_value_of_a_link_is_named(app_test):
    app = app_test(S=3, H="six", seed="odd", causal="left", gain=2)
    said = " ".join(error.value.replace("\\", "") for error in app.error)
    assert all(f"{name} = " in said for name in ("H", "seed", "causal"))
    assert "gain" not in said
    app.select_slider(key="w_S").set_value(4).run()
    assert not app.error
