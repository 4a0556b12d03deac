"""The main script, run for every visitor and every change: language, menu, then the chosen page.

A page is a file beside this one and a line in PAGES. Adding one: see CONTRIBUTING.md.
"""

from pathlib import Path

import streamlit as st

from parts.text import LANGUAGES, _, settle_language

HERE = Path(__file__).parent
ICON = HERE.parent / "assets/images/icon.svg"

# group -> (file name without .py, title, icon). The first page is the one the bare address opens.
PAGES = {
    "Attention, step by step": (
        ("step_through", "Step through", ":material/footprint:"),
        ("heads", "Heads", ":material/call_split:"),
        ("memory", "Memory layout", ":material/memory:"),
    ),
    "Why it works": (
        ("library", "The library", ":material/local_library:"),
        ("roles", "Three roles", ":material/theater_comedy:"),
        ("scaling", "Why divide by √d_k", ":material/compress:"),
        ("softmax", "Softmax", ":material/bar_chart:"),
        ("sources", "Where Q, K and V come from", ":material/call_merge:"),
        ("masks", "Masks", ":material/visibility_off:"),
        ("cost", "Cost", ":material/speed:"),
        ("claims", "Claims, tested", ":material/fact_check:"),
    ),
    "Learnt weights": (
        ("translator", "Translator", ":material/translate:"),
        ("model", "Model", ":material/hub:"),
    ),
    "Long maps": (("map", "The whole map", ":material/map:"),),
}


def menu() -> dict[str, list]:
    """The menu in the reader's language: group -> pages."""
    return {
        _(group): [
            st.Page(f"{name}.py", title=_(title), icon=icon, default=name == "step_through")
            for name, title, icon in pages
            if (HERE / f"{name}.py").is_file()
        ]
        for group, pages in PAGES.items()
    }


def language_switch() -> None:
    """The language switch. Not bound to the URL by Streamlit, which would write the label there
    ("简体中文") instead of the code."""
    st.sidebar.segmented_control(
        "Language · 语言",
        list(LANGUAGES),
        format_func=LANGUAGES.get,
        key="language",
        required=True,
        on_change=lambda: st.query_params.update(lang=st.session_state["language"]),
    )


st.set_page_config(page_title="QKV Microscope", page_icon=ICON, layout="wide")
settle_language()
language_switch()
pages = {group: listed for group, listed in menu().items() if listed}
if pages:
    st.navigation(pages, expanded=True).run()
else:
    st.title("QKV Microscope")
