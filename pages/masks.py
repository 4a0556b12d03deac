"""Masks: composed and seen at work, in both polarities, and what goes wrong with them."""

import streamlit as st

from parts import masks_views as views
from parts.masks_controls import asked
from parts.text import _, prose

st.title(_("Masks"))
st.markdown(prose("masks/intro"))
config = asked()
if config:
    views.composed(config)
    views.drawing(config)
    st.header(_("At work"), anchor=False)
    views.at_work(config)

    st.header(_("True means visible, or hidden"), anchor=False)
    st.markdown(prose("masks/polarity"))
    views.polarity(config)

st.header(_("−∞ against −1e9"), anchor=False)
st.markdown(prose("masks/fill"))
views.fill()

st.header(_("A query that sees nothing"), anchor=False)
st.markdown(prose("masks/blind"))
views.blind_query()

st.header(_("Causal with a past"), anchor=False)
st.markdown(prose("masks/past"))
views.past()
