"""What a link asks of a control and does not get is said, not passed over in silence.

Streamlit's own binding, and pages that clamp, fall back to a value that is possible: for numbers
`unheard` finds out. Who reads the address itself tells `passed_over`.
"""

import streamlit as st

from core import InputError
from parts.state import escaped, sentence

KEY = "link_as_opened"


def opened() -> None:
    """Remember the address a visitor came with: pages rewrite it as they run."""
    if KEY not in st.session_state:
        st.session_state[KEY] = dict(st.query_params)


def unheard() -> None:
    """Name each number of that address that is not what its control now shows; once."""
    link, st.session_state[KEY] = st.session_state[KEY], {}
    for name, text in link.items():
        shown = st.session_state.get(name)
        if isinstance(shown, int | float) and not isinstance(shown, bool) and not _is(text, shown):
            passed_over(name, text, str(shown))


def passed_over(name: str, text: str, shown: str) -> None:
    """Say that a control shows something else than the address asks of it."""
    problem = InputError("link-shown", name=name, got=text[:40], shown=shown or "–")
    st.toast(escaped(sentence(problem)), icon=":material/link_off:", duration="long")


def _is(text: str, number: float) -> bool:
    """Whether a text of the address is this number.

    >>> _is("0.50", 0.5), _is("1,024", 1024), _is("many", 0)
    (True, True, False)
    """
    try:
        return float(text.replace(",", "")) == number
    except ValueError:
        return False
