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
STYLE = Path(__file__).parents[2] / "assets/frame/frame.css"
ICONS = {name: icon for group in PAGES.values() for name, _title, icon in group}

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
            st.Page(folder / f"{name}.py", title=_(title))
            for name, title, _icon in pages
            if (folder / f"{name}.py").is_file()
        ]
        for group, pages in PAGES.items()
    }
    return {group: pages for group, pages in groups.items() if pages}


def pages(tongue: str) -> dict[str, list]:
    """The menu of this run: group -> pages. Copies, as running a page marks it as used."""
    return {group: [copy(page) for page in listed] for group, listed in _pages(tongue).items()}


def menu(groups: dict[str, list]) -> None:
    """The menu as links, for the sidebar. Streamlit's own has a list that is none to a screen
    reader and words in English; and an icon given to st.Page is fetched from another host."""
    with st.container(key="menu"):
        for group, listed in groups.items():
            st.caption(group)
            for page in listed:
                st.page_link(page, icon=ICONS[page._page.stem])


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
    """Give the document its style and language, and tell it which page is shown (assets/frame)."""
    st.html(STYLE)
    lang = LOCALES.get(tongue, tongue).replace("_", "-")
    _frame(key="frame", data={"lang": lang, "page": page, "menu": _("Pages")})
