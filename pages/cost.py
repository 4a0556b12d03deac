"""What attention costs: parameters, FLOPs, activations, KV cache, counted on step records."""

import streamlit as st

from core.cost import VARIED, cost, crossover
from parts import cost_views as views
from parts.cost_controls import layer
from parts.text import _, prose

st.title(_("Cost"))
st.markdown(prose("cost/intro"))
chosen, size = layer()
if chosen:
    counted = cost(chosen)
    views.totals(counted, size)

    st.header(_("Where the arithmetic goes"), anchor=False)
    views.parts(counted, crossover(chosen))

    st.header(_("One size grows, the others stay"), anchor=False)
    st.markdown(prose("cost/growth"))
    views.growth(chosen, views.varied(VARIED), size)

    st.header(_("Every step"), anchor=False)
    views.steps(counted, size)

    st.header(_("The same in PyTorch"), anchor=False)
    st.markdown(prose("cost/check"))
    views.code(chosen)

    st.header(_("Ways out"), anchor=False)
    st.markdown(prose("cost/ways", **views.ways(counted, size)))
