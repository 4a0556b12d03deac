"""What a link asks of a control and does not get is said, not passed over in silence.

Streamlit's own binding, and pages that clamp, fall back to a value that is possible: for numbers
`unheard` finds out. Who reads the address itself tells `passed_over`.
"""

import math
from urllib.parse import urlencode

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from core import InputError
from parts.state import escaped, sentence

KEY = "link_as_opened"


def opened() -> None:
    """Remember the address a visitor came with: pages rewrite it as they run."""
    if KEY not in st.session_state:
        st.session_state[KEY] = dict(st.query_params)
        _withhold_infinite(st.session_state[KEY])


def _withhold_infinite(link: dict[str, str]) -> None:
    """Keep infinite numbers of the address from bound controls: a whole-number box breaks at one.

    Streamlit reads them from the address as it first was, to which there is no public way.
    """
    finite = [name for name, text in link.items() if not math.isinf(_number(text))]
    if len(finite) < len(link):
        rest = {name: st.query_params.get_all(name) for name in finite}
        with get_script_run_ctx().session_state.query_params() as held:
            held.set_initial_query_params(urlencode(rest, doseq=True))


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
