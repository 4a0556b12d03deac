"""The default page: attention computed step by step, on numbers the reader can change."""

import streamlit as st

from core import AttentionConfig, InputError
from parts import microscope
from parts.controls import controls
from parts.editing import editing
from parts.sharing import sharing
from parts.sheet import sheet
from parts.state import FIELDS, config, sentence, write_url
from parts.step_view import cell_text, cost_text, notices, shape_table, step_text
from parts.text import _, prose
from parts.traces import described, trace
from parts.view import View

PANELS = {"sheet": "All steps", "edit": "Edit numbers", "share": "Share and download"}


@st.fragment
def stepping(chosen: AttentionConfig) -> None:
    """The microscope and all that follows the step: only this runs again when one steps."""
    if config() != chosen:  # a number was edited here: the sidebar must follow
        st.rerun()
    view = View.of(trace(chosen))
    view.mode_switch()
    manifest, values = described(chosen, view.pick, view.target)
    microscope.show(
        manifest, values, key="microscope", step=view.place, cell=view.cell, on_change=view.take
    )
    write_url((*FIELDS, *View.URL), chosen.to_url() | view.to_url())
    for name in chosen.unlinked():
        st.warning(sentence(InputError("link-long", name=name)))
    left, right = st.columns([5, 4], gap="medium")
    with left:
        step_text(view.trace, view.step)
        cost_text(view.step)
        cell_text(view.trace, view.cell)
        if view.target:
            st.markdown(prose("steps/gradient"))
    with right:
        st.markdown(prose("about/shapes"))
        shape_table(view.trace, view.step)
    panels(chosen, view)


def panels(chosen, view) -> None:
    """What is wanted now and then, made only when it is opened."""
    opened = view.panel_switch(PANELS)
    if opened == "sheet":
        sheet(chosen, view)
    elif opened == "edit":
        editing(chosen, dict(view.pick).get("B", 0))
    elif opened == "share":
        sharing(chosen, view)


st.title(_("Attention, step by step"))
st.markdown(prose("about/intro"))
controls()
notices(trace(config()))
stepping(config())
