"""What a link asks of a control and does not get is said, not passed over in silence.

Streamlit's own binding, and pages that clamp, fall back to a value that is possible: for numbers
`unheard` finds out. Who reads the address itself tells `passed_over`.
"""

import math

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from core import InputError
from parts.state import escaped, sentence

KEY = "link_as_opened"


def opened() -> None:
    """Remember the address a visitor came with: pages rewrite it as they run."""
    if KEY not in st.session_state:
        st.session_state[KEY] = dict(st.query_params)
        _drop_infinite(st.session_state[KEY])


def _drop_infinite(link: dict[str, str]) -> None:
    """Take infinite numbers out of the address: Streamlit's whole-number boxes break at them.

    It reads bound controls from the address as it first was, which has no public way in.
    """
    infinite = [name for name, text in link.items() if math.isinf(_number(text))]
    for name in infinite:
        del st.query_params[name]
    if infinite:
        with get_script_run_ctx().session_state.query_params() as held:
            held.set_initial_query_params_from_current()


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
    return _number(text) == number


def _number(text: str) -> float:
    """The number that a text of the address is, NaN for none."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return math.nan
