"""Why three roles: what W_Q, W_K and W_V change, compared with x·x on the same sentence."""

import streamlit as st

from core.experiments.roles import census_snippet, snippet, space_snippet
from parts.heads_tables import STYLE
from parts.roles_compare import compare, one_matrix
from parts.roles_controls import query, setting, turn
from parts.roles_spaces import spaces
from parts.text import ASSETS, _, prose


@st.fragment
def bench() -> None:
    """Everything that follows the sentence: only this runs again when something changes."""
    config = setting()
    if config is None:
        return
    st.header(_("x·x beside q·k"), anchor=False)
    compare(config)
    st.header(_("One matrix for both"), anchor=False)
    one_matrix(config)
    st.header(_("Three spaces"), anchor=False)
    st.markdown(prose("roles/spaces", d=config.d_k, H=config.H))
    asking = query(config)
    changed, place = turn(config)
    spaces(config, changed, asking, place)
    st.header(_("The same in PyTorch"), anchor=False)
    codes = (snippet(config), census_snippet(config), space_snippet(changed, asking))
    tabs = st.tabs([_("x·x beside q·k"), _("One matrix for both"), _("Three spaces")])
    for tab, code in zip(tabs, codes, strict=True):
        tab.code(code, language="python", wrap_lines=True)


st.title(_("Three roles"))
st.html(STYLE)
st.html(ASSETS / "roles/roles.css")
st.markdown(prose("roles/intro"))
bench()
