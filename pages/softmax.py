"""Softmax on one's own scores: each intermediate, its derivatives, where numbers give out."""

import streamlit as st

from core.experiments.softmax import snippet
from parts import softmax_views as views
from parts.softmax_scores import scores
from parts.tables import table_style
from parts.text import _, prose

table_style()
st.title(_("Softmax"))
st.markdown(prose("softmax/intro"))
row = scores()

# The tables depend on the temperature, which stands further down, beside its curve.
steps, shift, warmth = st.container(), st.container(), st.container()
with shift:
    st.header(_("A constant changes nothing"), anchor=False)
    st.markdown(prose("softmax/constant"))
    constant = views.constant()
with warmth:
    st.header(_("Temperature"), anchor=False)
    st.markdown(prose("softmax/temperature"))
    temperature = views.temperature()
    views.warmth(row, temperature)
with shift:
    views.shifted(row, constant, temperature)
with steps:
    st.header(_("From scores to shares"), anchor=False)
    st.markdown(prose("softmax/steps"))
    dtype = views.dtype()
    views.steps(row, temperature, dtype)

st.header(_("The derivative"), anchor=False)
st.markdown(prose("softmax/jacobian"))
views.derivatives(row, temperature)
views.one_slope(row, temperature)

st.header(_("Where exp gives out"), anchor=False)
st.markdown(prose("softmax/types"))
views.types(row, temperature, constant)

st.header(_("The same in PyTorch"), anchor=False)
st.code(snippet(row, temperature, dtype=dtype), language="python", wrap_lines=True)
