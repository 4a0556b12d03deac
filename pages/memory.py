"""Memory: what view, transpose, expand and contiguous do to shape, strides and storage."""

import streamlit as st

from core.memory import Walk, walk
from parts.memory_chain import (
    choose_stage,
    chosen_preset,
    controls,
    current,
    looked_at,
    put,
    remove,
    write_link,
)
from parts.memory_words import cure_label, reason
from parts.state import escaped
from parts.strides import strides
from parts.text import _, prose


@st.fragment
def bench() -> None:
    """Controls, stages and pictures: reruns by itself, without the frame around the page."""
    found = walk(*current())
    controls(found)
    if found.failure:
        refused(found)
    strides(found, looked_at(found), choose_stage, remove)
    if name := chosen_preset(found):
        st.markdown(prose(f"memory/{name}"))
    st.subheader(_("The same in PyTorch"))
    st.code(found.snippet(), language="python")
    write_link(found)


def refused(found: Walk) -> None:
    """What cannot be done: our reason, torch's words, and the ways out with their price."""
    failure = found.failure
    kept, after = found.chain[: failure.at], found.chain[failure.at + 1 :]
    with st.container(border=True, key="memory_refused"):
        st.error(f"`{failure.operation}` · {escaped(reason(failure))}", icon=":material/error:")
        if failure.message:
            st.caption(_("torch says:"))
            st.code(failure.message, language=None, wrap_lines=True)
        with st.container(horizontal=True):
            for place, cure in enumerate(failure.cures):
                st.button(
                    cure_label(cure),
                    wrap=True,
                    key=f"memory_cure_{place}",
                    on_click=put,
                    args=(found.shape, (*kept, *cure.operations, *after)),
                )
            st.button(
                _("Remove it"),
                key="memory_remove",
                on_click=put,
                args=(found.shape, (*kept, *after)),
            )


st.title(_("Memory layout"))
st.markdown(prose("memory/intro"))
bench()
with st.expander(_("How to read the pictures")):
    st.markdown(prose("memory/reading"))
