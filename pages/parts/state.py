"""The configuration a visitor is looking at: kept in the session, written to the URL, undoable.

Widgets never own a setting: they show the configuration's value and report a change, which is
taken if it fits and answered by one sentence if not. So a bad value loses nothing.
"""

from collections.abc import Iterable
from dataclasses import fields, replace

import streamlit as st

from core import AttentionConfig, InputError, preset
from core.errors import SENTENCES
from parts.text import _

FIELDS = tuple(field.name for field in fields(AttentionConfig))
REMEMBERED = 50  # steps of undo


def config() -> AttentionConfig:
    """The configuration of this session; at first the one in the URL, else the opening example."""
    if "config" not in st.session_state:
        given = {name: st.query_params[name] for name in FIELDS if name in st.query_params}
        chosen, problems = AttentionConfig.from_url(given)
        try:
            chosen.check_affordable()
        except InputError as problem:
            problems, given = [*problems, problem], {}
        if not given or (problems and chosen == AttentionConfig()):
            chosen = preset("example")
        st.session_state["config"] = chosen
        st.session_state["past"] = []
        if problems:
            report("link", *problems)
    return st.session_state["config"]


def put(chosen: AttentionConfig) -> None:
    """Take a new configuration; the one before can be brought back by `undo`."""
    before = config()
    if chosen != before:
        st.session_state["past"] = [*st.session_state["past"], before][-REMEMBERED:]
        st.session_state["config"] = chosen
    st.session_state.pop("problem", None)


def change(place: str = "", **values) -> bool:
    """Change some fields, or report beside `place` why that cannot be; whether it was done."""
    try:
        chosen = fitted(config(), values)
        chosen.check_affordable()
        put(chosen)
        return True
    except InputError as problem:
        report(place or next(iter(values)), problem)
        return False


def fitted(before: AttentionConfig, values: dict) -> AttentionConfig:
    """The changed configuration, without edits and mask pairs that its new sizes cannot hold."""
    bare = before.changed(**({"hidden": (), "lengths": None, "edits": ()} | values))
    kept = {}
    if "hidden" not in values:
        kept["hidden"] = tuple((i, j) for i, j in before.hidden if i < bare.S and j < bare.T)
    if "lengths" not in values and before.lengths and len(before.lengths) == (bare.B or 1):
        kept["lengths"] = tuple(min(n, bare.T) for n in before.lengths)
    if "edits" not in values:
        shapes = bare.input_shapes()
        kept["edits"] = tuple(edit for edit in before.edits if _fits(edit, shapes))
    return replace(bare, **kept) if kept else bare


def _fits(edit, shapes) -> bool:
    symbol, index, _value = edit
    shape = shapes.get(symbol, ())
    return len(index) == len(shape) and all(i < n for i, n in zip(index, shape, strict=True))


def undo() -> None:
    """Bring back the configuration before the last change."""
    if st.session_state.get("past"):
        st.session_state["config"] = st.session_state["past"].pop()
        st.session_state.pop("problem", None)


def report(place: str, *problems: InputError) -> None:
    """Remember problems until the next successful change, to be shown beside `place`."""
    st.session_state["problem"] = (place, problems)


def sentence(problem: InputError) -> str:
    """The problem in the reader's language."""
    return _(SENTENCES[problem.id]).format(**problem.facts)


def complain(*places: str) -> None:
    """Show the remembered problems if they belong to one of these places."""
    place, problems = st.session_state.get("problem", (None, ()))
    for problem in problems if place in places else ():
        st.error(escaped(sentence(problem)), icon=":material/error:")


def escaped(text: str) -> str:
    """Text of a visitor as it is, not as Markdown.

    >>> escaped("a*b<i>")
    'a\\\\*b\\\\<i\\\\>'
    """
    return "".join(
        f"\\{letter}" if letter in r"\`*_{}[]()<>#+-.!|$~:^=" else letter for letter in text
    )


def write_url(owned: Iterable[str], values: dict[str, str]) -> None:
    """Let the address say exactly `values` for the names in `owned`; others stay."""
    for name in owned:
        wanted = values.get(name)
        if st.query_params.get(name) != wanted:
            if wanted is None:
                del st.query_params[name]
            else:
                st.query_params[name] = wanted
