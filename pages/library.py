"""The library: a question, index cards and contents are queries, keys and values."""

import streamlit as st

from core.experiments.library import snippet
from parts.heads_tables import STYLE
from parts.library_acts import acts
from parts.library_edit import editing
from parts.library_lookups import hard_and_soft, lying
from parts.library_shelf import controls, shelf_table
from parts.text import _, prose


@st.fragment
def bench() -> None:
    """The question, the shelf and what is found: only this runs again when something changes."""
    shelf, question, temperature = controls()
    shelf_table(shelf)
    editing(shelf)
    st.header(_("Compare, share, read"), anchor=False)
    acts(shelf, question, temperature)
    st.header(_("One book or a mixture"), anchor=False)
    hard_and_soft(shelf, question, temperature)
    st.header(_("A card that lies"), anchor=False)
    lying(shelf, question, temperature)
    st.header(_("The same in PyTorch"), anchor=False)
    st.code(snippet(shelf, question, temperature), language="python", wrap_lines=True)


st.title(_("The library"))
st.html(STYLE)
st.markdown(prose("library/intro"))
bench()
