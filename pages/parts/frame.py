"""What stands around every page: the menu, the language switch, and the document's own settings."""

from copy import copy
from functools import cache
from pathlib import Path

import streamlit as st

from parts.text import LANGUAGES, LOCALES, N_, _

# group -> (file name without .py, title, icon). The first page is what the bare address opens.
PAGES = {
    N_("Attention, step by step"): (
        ("step_through", N_("Step through"), ":material/footprint:"),
        ("heads", N_("Heads"), ":material/call_split:"),
        ("memory", N_("Memory layout"), ":material/memory:"),
    ),
    N_("Why it works"): (
        ("library", N_("The library"), ":material/local_library:"),
        ("roles", N_("Three roles"), ":material/theater_comedy:"),
        ("scaling", N_("Why divide by √d_k"), ":material/compress:"),
        ("softmax", N_("Softmax"), ":material/bar_chart:"),
        ("sources", N_("Where Q, K and V come from"), ":material/call_merge:"),
        ("masks", N_("Masks"), ":material/visibility_off:"),
        ("cost", N_("Cost"), ":material/speed:"),
        ("claims", N_("Claims, tested"), ":material/fact_check:"),
    ),
    N_("Learnt weights"): (
        ("translator", N_("Translator"), ":material/translate:"),
        ("model", N_("Model"), ":material/hub:"),
    ),
    N_("Long maps"): (("map", N_("The whole map"), ":material/map:"),),
}
PRODUCT = "QKV Microscope"
ASSETS = Path(__file__).parents[2] / "assets"
ICON = ASSETS / "images/icon.svg"

# Streamlit sends a component's script again with each change of its data: these lines only load
# the real one.
_frame = st.components.v2.component(
    "frame",
    js="""
    export default async function (component) {
      const url = new URL("assets/frame/frame.js", document.baseURI);
      const { default: frame } = await import(url);
      frame(component);
    }
    """,
)


@cache
def _pages(tongue: str) -> dict[str, list]:
    """Group -> pages that exist, titled in `tongue`. Kept: making 14 takes 2 ms of a rerun."""
    folder = Path(__file__).parents[1]
    groups = {
        _(group): [
            st.Page(folder / f"{name}.py", title=_(title), icon=icon)
            for name, title, icon in listed
            if (folder / f"{name}.py").is_file()
        ]
        for group, listed in PAGES.items()
    }
    return {group: listed for group, listed in groups.items() if listed}


def navigate(tongue: str):
    """Put up the menu and return the page that the reader is on, ready to run.

    The window's icon is set before the menu, as Streamlit would fetch the page's from another
    host. The pages are copies, as running one marks it as used.
    """
    st.set_page_config(page_icon=ICON, layout="wide", initial_sidebar_state=300)  # px
    groups = {group: [copy(page) for page in listed] for group, listed in _pages(tongue).items()}
    page = st.navigation(groups, position="top", expanded=True)
    st.set_page_config(page_title=f"{page.title} · {PRODUCT}")
    st.logo(ICON.with_name("logo.svg"), icon_image=ICON, size="large")
    return page


def language_switch() -> None:
    """The language switch. Not bound to the URL by Streamlit, which would write the label there
    ("简体中文") instead of the code."""
    st.segmented_control(
        "Language · 语言",
        list(LANGUAGES),
        format_func=LANGUAGES.get,
        key="language",
        required=True,
        on_change=lambda: st.query_params.update(lang=st.session_state["language"]),
    )


def frame(tongue: str, page: str) -> None:
    """Give the document its language, and tell it which page is shown (assets/frame/frame.js)."""
    lang = LOCALES.get(tongue, tongue).replace("_", "-")
    _frame(key="frame", data={"lang": lang, "page": page})
