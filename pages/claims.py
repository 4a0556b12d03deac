"""Ten claims people repeat: what each says, what is measured here and now, and the verdict."""

import streamlit as st

from core.experiments.claims import CLAIMS, script
from parts import claims_views as views
from parts.text import _, prose

st.title(_("Claims, tested"))
st.markdown(prose("claims/intro"))
name = views.chosen()
claim = CLAIMS[name]
views.heading(claim)
settings = views.settings(claim)
views.measured(claim, settings)
st.markdown(prose(f"claims/{name}"))
with st.expander(_("The code that was just run"), expanded=False):
    st.code(script(name, settings), language="python")
st.header(_("All ten"), anchor=False)
views.overview()
