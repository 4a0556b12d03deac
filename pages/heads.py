"""Heads: how one matrix becomes many heads, how they come back, and what each of them adds."""

import streamlit as st

from parts.heads_controls import choose
from parts.heads_product import product, width
from parts.heads_sharing import sharing
from parts.heads_split import split
from parts.heads_tables import STYLE
from parts.heads_together import together
from parts.text import N_, _, prose

PARTS = {
    "split": (split, N_("Split and merge")),
    "product": (product, N_("One big W_Q")),
    "sharing": (sharing, N_("MHA, GQA, MQA")),
    "together": (together, N_("All heads side by side")),
    "width": (width, N_("d_k·h = H?")),
}


@st.fragment
def bench() -> None:
    """The chosen part; only this runs again when something in it changes."""
    part = choose(_("Part"), {name: _(label) for name, (_draw, label) in PARTS.items()}, "part")
    draw, _label = PARTS[part]
    draw()


st.title(_("Heads"))
st.html(STYLE)
st.markdown(prose("heads/intro"))
bench()
