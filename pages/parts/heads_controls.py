"""Controls of the Heads page: sizes, choices, and one sentence where sizes do not fit.

All of them stand in the URL, and outlive a visit to another part or page.
"""

from collections.abc import Mapping, Sequence

import streamlit as st

from core import AttentionConfig, InputError
from parts.state import escaped, sentence
from parts.text import _


def number(label: str, key: str, start: int, least: int, most: int, help: str | None = None) -> int:
    """A whole number from `least` to `most`, in the URL as `key`."""
    return st.number_input(
        label, least, most, start, key=key, help=help, width=170,
        bind="query-params", persist_state="session",
    )  # fmt: skip


def switch(label: str, key: str, help: str | None = None) -> bool:
    """A toggle, in the URL as `key`."""
    return st.toggle(label, key=key, help=help, bind="query-params", persist_state="session")


def choose(label: str, options: Mapping[str, str] | Sequence[str], key: str) -> str:
    """One of a few options, in the URL as `key` under its own name.

    Streamlit's own binding would write the translated label there. `options` maps names to labels;
    the first is the default and stays out of the URL.
    """
    labels = dict(options) if isinstance(options, Mapping) else {name: name for name in options}
    first, kept = next(iter(labels)), f"{key} kept"
    if key not in st.session_state:  # here again, or for the first time
        chosen = st.query_params.get(key, st.session_state.get(kept, first))
    else:  # a click has changed the URL already, so has the browser's back button
        chosen = st.query_params.get(key, first)
    chosen = chosen if chosen in labels else first
    if st.session_state.get(key) != chosen:
        st.session_state[key] = chosen
    _write(key, chosen, first)
    st.session_state[kept] = chosen
    return st.segmented_control(
        label,
        list(labels),
        key=key,
        format_func=labels.get,
        required=True,
        wrap=True,
        on_change=lambda: _write(key, st.session_state[key], first),
    )


def _write(key: str, chosen: str, first: str) -> None:
    if chosen == first:
        st.query_params.pop(key, None)
    elif st.query_params.get(key) != chosen:
        st.query_params[key] = chosen


def row():
    """A row of controls that wraps where there is no room."""
    return st.container(horizontal=True, vertical_alignment="bottom")


def sizes(batch: bool = False, most_S: int = 6) -> AttentionConfig | None:
    """S, H, h (and B) of the small examples; None, and the reason on screen, if they do not fit."""
    with row():
        S = number(_("S, sequence length"), "heads_S", 4, 1, most_S)
        H = number(_("H, hidden size"), "heads_H", 8, 1, 16)
        h = number(_("h, heads"), "heads_h", 2, 1, 8)
        B = number(_("B, batch size (0: none)"), "heads_B", 0, 0, 3) if batch else 0
    return fit(S=S, H=H, h=h, B=B or None, project=True, gain=2.0)


def fit(**values) -> AttentionConfig | None:
    """The configuration, or None and one sentence that says why there is none."""
    try:
        return AttentionConfig(**values)
    except InputError as problem:
        refuse(problem)
    return None


def refuse(problem: InputError) -> None:
    """One sentence in the reader's language."""
    st.error(escaped(sentence(problem)), icon=":material/error:")
