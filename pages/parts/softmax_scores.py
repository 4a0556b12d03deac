"""The scores a reader looks at: boxes, a list as text, examples; each change can be undone."""

import streamlit as st

from core import InputError
from core.experiments.softmax import (
    EXAMPLES,
    FEWEST,
    LARGEST,
    MOST,
    Row,
    checked,
    read_scores,
    subscripts,
    write_scores,
)
from parts.state import complain, report, write_url
from parts.text import N_, _

START = EXAMPLES["start"]
REMEMBERED = 50  # steps of undo
PLACE = "softmax_scores"  # of a problem, and of the scores in the session
LABELS = {
    "start": N_("Four scores"),
    "even": N_("All equal"),
    "tie": N_("Two in front"),
    "certain": N_("One far ahead"),
    "twelve": N_("Around 11"),
    "hundred": N_("Around 99"),
    "thousand": N_("Around 999"),
    "low": N_("Around −21"),
}


def scores() -> Row:
    """Draw the controls; returns the scores as they now are."""
    row = _current()
    _examples(row)
    _text(row)
    complain(PLACE)
    _boxes(row)
    _buttons(row)
    write_url(("scores",), {"scores": write_scores(row)} if row != START else {})
    return row


def _current() -> Row:
    """The session's scores; at first those in the link."""
    if PLACE not in st.session_state:
        st.session_state[PLACE], st.session_state["softmax_past"] = START, []
        if "scores" in st.query_params:
            _take(lambda: read_scores(st.query_params["scores"]))
            st.session_state["softmax_past"] = []
    return st.session_state[PLACE]


def _take(make) -> None:
    """Take new scores, or say beside them why that cannot be."""
    try:
        row = checked(make())
    except InputError as problem:
        return report(PLACE, problem)
    before = st.session_state[PLACE]
    if row != before:
        st.session_state["softmax_past"] = [*st.session_state["softmax_past"], before][-REMEMBERED:]
    st.session_state[PLACE] = row
    _settle()
    return None


def _undo() -> None:
    st.session_state[PLACE] = st.session_state["softmax_past"].pop()
    _settle()


def _settle() -> None:
    """What was said of an earlier text no longer holds."""
    if st.session_state.get("problem", ("",))[0] == PLACE:
        del st.session_state["problem"]


def _refused() -> bool:
    return st.session_state.get("problem", ("",))[0] == PLACE


# --- the controls -----------------------------------------------------------------------------


def _examples(row: Row) -> None:
    names = {example: name for name, example in EXAMPLES.items()}
    st.session_state["softmax_example"] = names.get(row)
    st.pills(
        _("Examples"),
        list(EXAMPLES),
        key="softmax_example",
        format_func=lambda name: _(LABELS[name]),
        on_change=_take_example,
        wrap=True,
    )


def _take_example() -> None:
    name = st.session_state["softmax_example"]
    if name:
        _take(lambda: EXAMPLES[name])


def _text(row: Row) -> None:
    """A box with all scores; a text that could not be read stays in it."""
    key = "softmax_text"
    if not (_refused() and key in st.session_state):
        st.session_state[key] = write_scores(row)
    st.text_input(
        _("Scores, {least} to {most} of them").format(least=FEWEST, most=MOST),
        key=key,
        max_chars=300,
        on_change=lambda: _take(lambda: read_scores(st.session_state[key])),
    )


def _boxes(row: Row) -> None:
    """A box per score."""
    with st.container(horizontal=True):
        for i, (name, value) in enumerate(zip(subscripts(len(row)), row, strict=True)):
            key = f"softmax_x_{i}"
            st.session_state[key] = value
            st.number_input(
                name,
                -LARGEST,
                LARGEST,
                step=0.5,
                format="%g",
                key=key,
                width=160,
                on_change=_take_box,
                args=(i, key),
            )


def _take_box(i: int, key: str) -> None:
    row = st.session_state[PLACE]
    _take(lambda: (*row[:i], st.session_state[key], *row[i + 1 :]))


def _buttons(row: Row) -> None:
    with st.container(horizontal=True):
        st.button(
            _("Add a score"),
            icon=":material/add:",
            key="softmax_add",
            disabled=len(row) == MOST,
            on_click=lambda: _take(lambda: (*row, 0.0)),
        )
        st.button(
            _("Remove the last"),
            icon=":material/remove:",
            key="softmax_remove",
            disabled=len(row) == FEWEST,
            on_click=lambda: _take(lambda: row[:-1]),
        )
        st.button(
            _("Undo"),
            icon=":material/undo:",
            key="softmax_undo",
            disabled=not st.session_state["softmax_past"],
            on_click=_undo,
        )
        st.button(
            _("Reset"),
            icon=":material/restart_alt:",
            key="softmax_reset",
            disabled=row == START and not _refused(),
            on_click=lambda: _take(lambda: START),
        )
