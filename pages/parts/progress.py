"""Work that takes a while: a bar for how far it is, a stop button, and what there is is kept.

Only outside of fragments: Streamlit lets the change of a fragment wait until the script has ended,
and the stop button with it.
"""

import time
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field

import streamlit as st

from parts.text import _

PATIENCE = 0.4  # seconds without a bar


@dataclass
class Work:
    """What an iterator has given so far."""

    wanted: Hashable
    steps: Iterator
    found: list = field(default_factory=list)
    stopped: bool = False
    complete: bool = False


def gathered(key: str, wanted: Hashable, steps: Callable[[], Iterator], total: int) -> list:
    """All that `steps()` gives, at most `total` results; fewer if the reader stops it.

    Begins anew when `wanted` (all settings that matter, hashable) has changed. At least one result.
    """
    work = st.session_state.get(key)
    if work is None or work.wanted != wanted:
        work = st.session_state[key] = Work(wanted, steps())
    if not (work.stopped or work.complete):
        _advance(key, work, total)
    if work.stopped:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(_("Stopped after {done} of {total} parts.").format(
                done=len(work.found), total=total))  # fmt: skip
            st.button(
                _("Continue"), key=f"{key}_continue", on_click=_set_stopped, args=(work, False)
            )
    return work.found


def _advance(key: str, work: Work, total: int) -> None:
    """Work through the steps. A change of any control interrupts it at the bar; nothing is lost."""
    place, bar, begun = st.empty(), None, time.monotonic()
    for found in work.steps:
        work.found.append(found)
        if bar is None and time.monotonic() - begun > PATIENCE and len(work.found) < total:
            with place.container(horizontal=True, vertical_alignment="center"):
                bar = st.progress(0.0)
                st.button(
                    _("Stop the run"),
                    icon=":material/stop_circle:",
                    key=f"{key}_stop",
                    on_click=_set_stopped,
                    args=(work, True),
                )
        if bar:
            bar.progress(
                len(work.found) / total,
                _("{done} of {total} parts").format(done=len(work.found), total=total),
            )
    work.complete = True
    place.empty()


def _set_stopped(work: Work, stopped: bool) -> None:
    work.stopped = stopped
