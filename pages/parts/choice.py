"""Choices that stand in the link by their names, not by their labels.

Streamlit's own binding would write what is shown: a link from a Chinese page would not open in an
English one, and 1,024 would need its comma.
"""

from collections.abc import Mapping, Sequence

import streamlit as st

from parts.link import passed_over
from parts.state import write_url
from parts.text import _


def choice(label: str, names: Mapping[str, str], key: str, *, default: str, **options) -> str:
    """One of several, as buttons in a row. `names`: name in the link -> English label.

    `default` stays out of the link; a name in it that is not known is answered by a sentence.
    """
    text = _open(key, default, lambda text: text if text in names else default)
    if text not in (None, *names):
        passed_over(key, text, _(names[default]))
    chosen = st.segmented_control(
        label,
        list(names),
        key=key,
        format_func=lambda name: _(names[name]),
        required=True,
        wrap=True,
        **options,
    )
    write_url((key,), {key: chosen} if chosen != default else {})
    return chosen


def choices(label: str, names: Mapping[str, str], key: str, **options) -> list[str]:
    """Any of several, none at first, as pills."""
    text = _open(key, [], lambda text: [name for name in text.split(",") if name in names])
    if text and not set(text.split(",")) <= set(names):
        passed_over(key, text, ", ".join(_(names[name]) for name in st.session_state[key]))
    chosen = st.pills(
        label,
        list(names),
        key=key,
        format_func=lambda name: _(names[name]),
        selection_mode="multi",
        wrap=True,
        **options,
    )
    write_url((key,), {key: ",".join(chosen)} if chosen else {})
    return chosen


def steps(label: str, options: Sequence[int], key: str, *, default: int, place=st) -> int:
    """One of several whole numbers on a slider, shown with commas and linked without."""
    known = {str(option): option for option in options}
    _open(key, default, lambda text: known.get(text, default))
    chosen = place.select_slider(label, options, key=key, format_func="{:,}".format)
    write_url((key,), {key: str(chosen)} if chosen != default else {})
    return chosen


def _open(key, default, read) -> str | None:
    """Let the widget begin with what the link says; the text that was read there, if any."""
    if key in st.session_state:
        return None
    text = st.query_params.get(key)
    st.session_state[key] = default if text is None else read(text)
    return text
