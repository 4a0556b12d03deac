"""Choices that stand in the link by their names, not by their labels.

Streamlit's own binding would write what is shown: a link from a Chinese page would not open in an
English one, and 1,024 would need its comma.
"""

from collections.abc import Mapping, Sequence

import streamlit as st

from parts.state import write_url
from parts.text import _


def choice(label: str, names: Mapping[str, str], key: str, *, default: str, **options) -> str:
    """One of several, as buttons in a row. `names`: name in the link -> English label.

    `default` stays out of the link; a name in it that is not known is passed over.
    """
    _open(key, names, default, lambda text: text if text in names else default)
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
    _open(key, names, [], lambda text: [name for name in text.split(",") if name in names])
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
    _open(key, known, default, lambda text: known.get(text, default))
    chosen = place.select_slider(label, options, key=key, format_func="{:,}".format)
    write_url((key,), {key: str(chosen)} if chosen != default else {})
    return chosen


def _open(key, names, default, read) -> None:
    """Let the widget begin with what the link says."""
    if key not in st.session_state:
        st.session_state[key] = read(st.query_params[key]) if key in st.query_params else default
