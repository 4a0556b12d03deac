"""Who asks whom: self- and cross-attention as step-throughs, and which W has which shape."""

import streamlit as st

from core import AttentionConfig
from parts import microscope
from parts import sources_views as views
from parts.sources_controls import asked
from parts.step_view import cell_text, cost_text, shape_table, step_text
from parts.text import _, prose
from parts.traces import described, trace
from parts.view import View


@st.fragment
def stepping(config: AttentionConfig) -> None:
    """The microscope on this computation, and what follows the step."""
    view = View.of(trace(config))
    manifest, values = described(config, view.pick)
    microscope.show(
        manifest, values, key="sources", step=view.place, cell=view.cell, on_change=view.take
    )
    view.write_url()
    left, right = st.columns([5, 4], gap="medium")
    with left:
        step_text(view.trace, view.step)
        cost_text(view.step)
        cell_text(view.trace, view.cell)
    with right:
        shape_table(view.trace, view.step)


st.title(_("Where Q, K and V come from"))
st.markdown(prose("sources/intro"))
config = asked()
if config:
    st.header(_("Who gives what"), anchor=False)
    views.table(config)
    st.header(_("Step by step"), anchor=False)
    stepping(config)
    st.header(_("When the widths do not agree"), anchor=False)
    st.markdown(prose("sources/widths"))
    views.misfit(config)
    st.header(_("Where it is used"), anchor=False)
    st.markdown(prose("sources/used"))
    st.header(_("The same in PyTorch"), anchor=False)
    st.code(trace(config).source(), language="python")
