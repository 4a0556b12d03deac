"""All intermediates at once, small: the contact sheet."""

import streamlit as st

from core.figures import STILL
from core.figures.contact_sheet import contact_sheet
from parts.text import _, prose
from parts.traces import sample_labels


def sheet(config, view) -> None:
    """One figure of every step, each on its own scale, the current one marked."""
    st.markdown(prose("about/contact_sheet"))
    figure = contact_sheet(
        view.trace,
        pick=dict(view.pick),
        labels=sample_labels(config, dict(view.pick).get("B", 0)),
        text={"pooled": _("largest of its block")},
        dark=st.context.theme.type == "dark",
        current=view.step.symbol,
    )
    alt = _("All steps as small heatmaps")
    st.plotly_chart(figure, theme=None, key="sheet", config=STILL, alt=alt)
