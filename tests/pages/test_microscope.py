"""What reaches the browser and what comes back, without a browser."""

import json

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

import core
from core.manifest import manifest
from parts.microscope import pack, unpack

DESCRIBED, VALUES = manifest(core.run(core.AttentionConfig(S=4, H=6, d_k=3)))


def test_pack_keeps_every_number_and_the_manifest():
    values = np.array([1.5, -np.inf, np.nan, 3e-39], np.float32)
    for text in ({}, {"play": "播放"}, {"play": "x"}):
        packed = pack({"steps": []}, values, text=text, step=2, epoch=5, key="k")
        header, numbers = unpack(packed)
        assert numbers.tobytes() == values.tobytes()
        assert (len(packed) - 4 * values.size) % 4 == 0
        assert header["text"] == text
        assert (header["manifest"], header["step"], header["epoch"]) == ({"steps": []}, 2, 5)


def test_pack_names_equal_data_alike():
    one, two = (unpack(pack(DESCRIBED, VALUES, text={}, step=s))[0]["id"] for s in (0, 3))
    other = unpack(pack(DESCRIBED, VALUES + 1, text={}))[0]["id"]
    assert one == two != other


@pytest.mark.parametrize(
    "values",
    [
        torch.zeros(3),
        np.zeros((1, 2, 3), np.float32),
        np.zeros(3),
        [1.0, 2.0],
        b"\x00\x00\x00\x00",
    ],
    ids=["tensor", "3-D", "float64", "list", "bytes"],
)
def test_pack_refuses_other_values(values):
    with pytest.raises(TypeError, match="1-D float32"):
        pack({"steps": []}, values, text={})


@pytest.mark.parametrize(
    ("strange", "error"),
    [(torch.ones(1), TypeError), (b"x", TypeError), (float("nan"), ValueError)],
    ids=["tensor", "bytes", "nan"],
)
def test_pack_refuses_what_json_cannot_say(strange, error):
    with pytest.raises(error):
        pack({"steps": [], "extra": [strange]}, VALUES, text={})


def test_pack_refuses_a_tensor_beyond_the_values():
    with pytest.raises(ValueError, match=r"output ends at 1\d\d, beyond the 10 values"):
        pack({"steps": [DESCRIBED["steps"][-1]]}, VALUES[:10], text={})


def test_a_mask_too_large_for_its_cells_is_a_picture():
    """Each place of it says whether its block lets anything through, and where."""
    trace = core.run(core.AttentionConfig(S=300, H=4, causal=True))
    described, values = manifest(trace)
    about = next(s["tensor"] for s in described["steps"] if s["symbol"] == "mask")
    rows, cols, (down, across) = about["rows"], about["cols"], about["block"]
    drawn = values[about["offset"] :][: rows * cols].reshape(rows, cols)
    where = values[about["where"] :][: rows * cols].astype(int)
    for i in range(rows):
        for j in range(cols):
            block = trace["mask"][i * down : (i + 1) * down, j * across : (j + 1) * across]
            assert drawn[i, j] == block.any()
    assert (trace["mask"].flatten()[where].numpy() == drawn.flatten()).all()


def script():
    import streamlit as st

    import core
    from core.manifest import manifest
    from parts import microscope

    described, values = manifest(core.run(core.AttentionConfig(S=4, H=6, d_k=3)))
    if "jump" in st.session_state:
        microscope.jump("m", st.session_state.pop("jump"))
    if "reported" in st.session_state:  # what a browser would have sent
        st.session_state["m"].update({})
        for name, value in st.session_state.pop("reported").items():
            st.session_state["m"][name] = value
    if not st.session_state.get("elsewhere"):
        wanted = st.session_state.get("wanted", 0)
        cell = st.session_state.get("cell")
        chosen = microscope.show(described, values, key="m", step=wanted, cell=cell)
        st.session_state["chosen"] = (chosen.step, chosen.cell, chosen.pick)


class Page:
    """A page with a microscope, run again with changed wishes of the page or of the reader."""

    def __init__(self):
        self.app = AppTest.from_function(script)

    def run(self, **state):
        for name, value in state.items():
            self.app.session_state[name] = value
        self.app.run()
        assert not self.app.exception
        found = self.app.get("bidi_component")
        self.sent = unpack(found[0].proto.bytes)[0] if found else None
        return self.app.session_state["chosen"]


@pytest.fixture
def opened():
    return Page()


def test_first_run_shows_the_wanted_step(opened):
    assert opened.run(wanted=7) == (7, None, {})
    assert (opened.sent["step"], opened.sent["epoch"]) == (7, 1)


def test_a_link_names_a_cell_too(opened):
    cell = {"symbol": "scores", "index": [1, 2]}
    assert opened.run(wanted=7, cell=cell) == (7, cell, {})
    assert opened.sent["cell"] == cell
    assert opened.run(reported={"cell": None})[1] is None
    assert opened.sent["cell"] == cell  # the same data: nothing is sent again


def test_readers_own_step_wins_and_resends_nothing(opened):
    opened.run(wanted=0)
    before = opened.sent
    cell = {"symbol": "scores", "index": [0, 1]}
    assert opened.run(reported={"step": 3, "cell": cell})[:2] == (3, cell)
    assert opened.sent == before
    opened.run(wanted=3)  # the page follows
    assert opened.run(reported={"step": 4})[0] == 4  # and lags behind
    assert opened.sent == before


def test_a_link_moves_the_reader(opened):
    opened.run(wanted=0)
    opened.run(reported={"step": 3})
    assert opened.run(wanted=8)[0] == 8
    assert (opened.sent["step"], opened.sent["epoch"]) == (8, 2)


def test_jump_moves_the_reader_back_to_where_the_page_started(opened):
    opened.run(wanted=0)
    opened.run(reported={"step": 3})
    assert opened.run(jump=0)[0] == 0
    assert (opened.sent["step"], opened.sent["epoch"]) == (0, 2)


def test_coming_back_from_another_page_asks_again(opened):
    opened.run(wanted=5)
    opened.run(elsewhere=True)
    assert opened.run(elsewhere=False)[0] == 5
    assert (opened.sent["step"], opened.sent["epoch"]) == (5, 2)


@pytest.mark.parametrize(
    "cell",
    [
        {"symbol": "nothing", "index": [0, 0]},
        {"symbol": "scores", "index": [4, 0]},
        {"symbol": "scores", "index": [0]},
    ],
    ids=["symbol", "beyond", "rank"],
)
def test_a_cell_that_is_not_there_is_dropped(opened, cell):
    opened.run()
    assert opened.run(reported={"step": 99, "cell": cell})[:2] == (10, None)


def test_labels_are_complete_in_chinese():
    from parts.text import catalog

    words = json.loads(json.dumps(_words()))
    flat = [*words["stages"].values(), *(v for v in words.values() if isinstance(v, str))]
    assert [w for w in flat if catalog("zh").gettext(w) == w] == []


def _words():
    from parts.microscope import words

    return words()
