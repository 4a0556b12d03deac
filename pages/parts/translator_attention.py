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


def gallery(text: str, edits: Edits, place: str, layer: int) -> None:
    """The weights of all its heads, on one scale."""
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
        dark=st.context.theme.type == "dark",
    )
    said = _("Weights of {h} heads as heatmaps: queries down, keys across").format(h=len(weights))
    st.plotly_chart(figure, theme=None, config=CONFIG, key="translator_gallery", alt=said)


@st.fragment
def opened(text: str, edits: Edits, place: str, layer: int, at: int) -> None:
    """The microscope on this very computation, and how far it agrees with the model's own."""
    rows = "all"
    if place != "encoder":
        rows = choice(_("Rows"), ROWS, "rows", default="all")
    step = at if rows == "one" else None
    computed = trace(text, edits, place, layer, step)
    st.markdown(prose(f"translator/open_{place}", **_agreement(text, edits, place, layer, step)))
    view = View.of(computed)
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
