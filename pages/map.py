"""The whole map of a long sequence, exact, down to one cell."""

import streamlit as st

from parts import map_controls as controls
from parts.map_code import take_along
from parts.map_component import preload
from parts.map_view import go_to, stage
from parts.text import _, prose

st.title(_("The whole map"))
st.markdown(prose("map/intro"))

name = controls.source_name()
job, scale = controls.job(name)
if job is None:
    if name == "own":
        st.info(prose("map/waiting"), icon=":material/upload_file:")
        preload()
    st.stop()

stage(job, scale)
if job.source.landmark:
    st.button(
        _("Go to the cell to look at first"),
        key="map_landmark",
        icon=":material/pin_drop:",
        on_click=go_to,
        args=(job.source.landmark,),
    )

st.header(_("How to read it"), anchor=False)
st.markdown(prose("map/reading"))
st.header(_("In a notebook"), anchor=False)
take_along(job, scale)
