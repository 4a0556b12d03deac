"""The main script, run for every visitor and every change: menu and language, then the page."""

import streamlit as st

from parts.frame import frame, language_switch, navigate
from parts.link import opened, unheard
from parts.text import settle_language

opened()
tongue = settle_language()
page = navigate(tongue)
with st.sidebar:
    language_switch()
    frame(tongue, page.url_path)
page.run()
unheard()
