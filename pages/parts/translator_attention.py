"""One attention of the translator, opened: its place, its layer, its heads, and the microscope."""

import streamlit as st

from core.figures import CONFIG
from core.figures.gallery import head_gallery
from core.numbers import write
from core.translator import Edits, load
from parts import microscope
from parts.choice import choice
from parts.step_view import cell_text, cost_text, notices, shape_table, step_text
from parts.text import N_, _, prose
from parts.translator_runs import PLACES, described, run, sides, trace
from parts.view import View

ROWS = {"all": N_("all rows at once"), "one": N_("the row of this step, with the cache")}


def chosen() -> tuple[str, int]:
    """Which attention is opened: (place, layer)."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        place = choice(_("Attention"), PLACES, "place", default="encoder")
        layers = {str(i + 1): str(i + 1) for i in range(load().sizes.layers(place))}
        layer = "1"
        if len(layers) > 1:
            layer = choice(_("Layer"), layers, f"{place}_layer", default="1")
    return place, int(layer) - 1


def _head(view: View) -> int:
    """Which head is opened; the microscope's own choice is the same one."""
    at, key = dict(view.pick).get("h", 0), "opened_head"
    if st.session_state.get(key) != at:
        st.session_state[key] = at

    def take() -> None:
        pick = {"h": st.session_state[key]}
        view.take(microscope.Chosen(view.place, view.cell, pick))

    return st.segmented_control(
        _("Head"), range(load().sizes.h), key=key, required=True, on_change=take,
        format_func=lambda head: str(head + 1),
    )  # fmt: skip


def _gallery(text: str, edits: Edits, place: str, layer: int, head: int) -> None:
    """The weights of all its heads, on one scale; the opened one is marked."""
    made = run(text, edits)
    asking, answering = sides(made, place)
    weights = made.weights[place, layer]
    figure = head_gallery(
        weights,
        titles=[_("head {number}").format(number=i + 1) for i in range(len(weights))],
        rows=asking,
        cols=answering,
        row_title=_("query"),
        col_title=_("key"),
        current=head,
        dark=st.context.theme.type == "dark",
    )
    said = _("Weights of {h} heads as heatmaps: queries down, keys across").format(h=len(weights))
    st.plotly_chart(figure, theme=None, config=CONFIG, key="translator_gallery", alt=said)


@st.fragment
def opened(text: str, edits: Edits, place: str, layer: int, at: int) -> None:
    """All heads beside each other, then the microscope on this very computation."""
    rows = "all"
    with st.container(horizontal=True, vertical_alignment="bottom"):
        spot = st.container(width="content")
        if place != "encoder":
            rows = choice(_("Rows"), ROWS, "rows", default="all")
    step = at if rows == "one" else None
    computed = trace(text, edits, place, layer, step)
    view = View.of(computed)
    with spot:
        head = _head(view)
    _gallery(text, edits, place, layer, head)
    st.markdown(prose(f"translator/open_{place}", **_agreement(text, edits, place, layer, step)))
    manifest, values = described(text, edits, place, layer, step, view.pick)
    microscope.show(
        manifest, values, key="translator", step=view.place, cell=view.cell, on_change=view.take
    )
    view.write_url()
    left, right = st.columns([5, 4], gap="medium")
    with left:
        step_text(computed, view.step)
        cost_text(view.step)
        cell_text(computed, view.cell)
        notices(computed)
    with right:
        shape_table(computed, view.step)


def _agreement(text, edits, place, layer, step) -> dict:
    made, computed = run(text, edits), trace(text, edits, place, layer, step)
    model = made.out[place, layer]
    model = model if step is None else model[step : step + 1]
    far = float((computed["projected"] - model).abs().max())
    return {"layer": layer + 1, "far": write(far, 2)}
