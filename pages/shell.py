"""The main script, run for every visitor and every change: language and menu, then the page."""

from pathlib import Path

import streamlit as st

from parts.frame import frame, language_switch, menu, pages
from parts.text import settle_language

ICON = Path(__file__).parents[1] / "assets/images/icon.svg"

tongue = settle_language()
groups = pages(tongue)
page = st.navigation(groups, position="hidden")
st.set_page_config(
    page_title=f"{page.title} · QKV Microscope",
    page_icon=ICON,
    layout="wide",
    initial_sidebar_state=300,  # px: room for two sliders side by side
)
st.logo(ICON.with_name("logo.svg"), icon_image=ICON, size="large")
with st.sidebar:
    language_switch()
    menu(groups)
    frame(tongue, page.url_path)
page.run()
