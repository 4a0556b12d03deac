"""What the product says, in the reader's language: labels by gettext, prose from Markdown files.

Labels: English is the msgid; the catalogs `assets/locale/<locale>/LC_MESSAGES/*.po` are read once
and merged. Prose: `assets/text/<language>/<name>.md`, with `{{placeholders}}`. Everything is kept
in memory after its first use, so that a rerun reads no file.
"""

import re
from functools import cache
from gettext import GNUTranslations, NullTranslations
from io import BytesIO
from pathlib import Path

import streamlit as st
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

ASSETS = Path(__file__).resolve().parents[2] / "assets"
LANGUAGES = {
    "en": "English",
    "zh": "简体中文",
}  # each named in its own tongue, as readers look for it
LOCALES = {"zh": "zh_CN"}  # English needs no catalog: it is the source
DEFAULT = "en"

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


def language() -> str:
    """The reader's language, "en" or "zh", as the shell has settled it for this session.

    >>> language()  # outside an app
    'en'
    """
    return st.session_state.get("language") or browser_language()


def settle_language() -> str:
    """Decide the language for this run: `?lang=` where given, else as before, else the browser's.

    A page switch empties the URL, so a language that is not the browser's own is written back.
    """
    named = st.query_params.get("lang")
    chosen = named if named in LANGUAGES else language()
    if named != chosen and (named or chosen != browser_language()):
        st.query_params["lang"] = chosen
    st.session_state["language"] = chosen
    return chosen


def browser_language() -> str:
    """The first part of the browser's locale if the product speaks it: "zh-TW" gives "zh"."""
    primary = (st.context.locale or "").replace("_", "-").partition("-")[0].lower()
    return primary if primary in LANGUAGES else DEFAULT


def _(message: str) -> str:
    """The label in the reader's language; `message` itself where the catalogs have no entry.

    >>> _("Heads")
    'Heads'
    """
    return catalog(language()).gettext(message)


def N_(message: str) -> str:
    """Marks a label that a table holds and `_` translates later; returns it as it is."""
    return message


def prose(name: str, **values: object) -> str:
    """Markdown of `assets/text/<language>/<name>.md`, each `{{key}}` replaced by `values[key]`.

    Raises FileNotFoundError for an unknown name and KeyError for a placeholder without a value.

    >>> prose("steps/scores", S=4, d_k=3)  # doctest: +SKIP
    'Each of the 4 queries …'
    """
    return _PLACEHOLDER.sub(lambda found: str(values[found[1]]), _markdown(language(), name))


@cache
def catalog(tongue: str) -> NullTranslations:
    """All labels of one language, merged from its .po files in the order of their names."""
    if tongue not in LOCALES:
        return NullTranslations()
    merged = Catalog(locale=LOCALES[tongue])
    for path in sorted((ASSETS / "locale" / LOCALES[tongue] / "LC_MESSAGES").glob("*.po")):
        with path.open("rb") as file:
            for message in read_po(file, locale=LOCALES[tongue]):
                if message.id:
                    merged[message.id] = message
    compiled = BytesIO()
    write_mo(compiled, merged)
    compiled.seek(0)
    return GNUTranslations(compiled)


@cache
def _markdown(tongue: str, name: str) -> str:
    return (ASSETS / "text" / tongue / f"{name}.md").read_text(encoding="utf-8").strip()
