"""Who asks whom, without a browser."""

import numpy as np
import pytest
import torch

import core
from core import AttentionConfig
from core.inputs import split_sentence
from parts.microscope import unpack

SOURCE, TARGET = split_sentence("the cat sat on the mat"), split_sentence("猫坐在垫子上")


def sent(app):
    found = [e for e in app.get("bidi_component") if e.proto.component_name == "qkv_microscope"]
    return unpack(found[0].proto.bytes)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_cross_attention_of_two_sentences_is_nn_multihead_attention(app_test, lang):
    app = app_test("sources", lang=lang)
    header, _values = sent(app)
    labels = header["manifest"]["labels"]
    assert labels == {"T": list(SOURCE), "S": list(TARGET)}
    config = AttentionConfig(
        H=6, H_Y=4, d_k=3, d_v=2, cross=True, project=True, gain=2.0, tokens=(SOURCE,),
        targets=(TARGET,),
    )  # fmt: skip
    trace = core.run(config)
    shapes = {step["symbol"]: tuple(step["shape"]) for step in header["manifest"]["steps"]}
    assert shapes == {symbol: trace.shape(symbol) for symbol in trace}
    assert shapes["scores"] == (6, 6)
    wanted = torch.softmax(trace["Y"] @ trace["W_Q"] @ (trace["X"] @ trace["W_K"]).T / 3**0.5, -1)
    torch.testing.assert_close(trace["weights"], wanted)


def test_self_attention_has_one_sequence_and_equal_widths_are_said(app_test):
    app = app_test("sources", sources_kind="self")
    header, _values = sent(app)
    assert "Y" not in {step["symbol"] for step in header["manifest"]["steps"]}
    assert app.success


def test_a_w_for_the_wrong_side_is_refused_in_the_readers_language(app_test):
    app = app_test("sources", lang="zh", sources_H=6, sources_H_Y=8)
    assert "W_Q" in app.error[0].value.replace("\\", "")
    assert "6" in app.error[0].value


def test_typed_sentences_become_rows(app_test):
    app = app_test("sources", sources_X="a b <i>", sources_Y="猫")
    header, values = sent(app)
    assert header["manifest"]["labels"] == {"T": ["a", "b", "<i>"], "S": ["猫"]}
    assert np.isfinite(values).all()
