"""The shape and chain a visitor is looking at, and the controls that change them.

Kept in the session and written to the URL. Every change goes through `put`, so each can be undone.
A text that cannot be read stays in its box with one sentence beside it; the chain stays as it was.
"""

import re
from collections.abc import Callable

import streamlit as st

from core.memory import Walk, walk
from core.memory_chain import (
    FORMS,
    Chain,
    ChainError,
    Shape,
    read_chain,
    read_shape,
    write_chain,
    write_shape,
)
from core.memory_presets import PRESETS
from parts.memory_arguments import argument_boxes, written
from parts.memory_words import sentence
from parts.state import escaped, write_url
from parts.text import N_, _

START = PRESETS["transpose"]
PRESET_LABELS = {
    "transpose": N_("Transpose (1, 4, 2, 3)"),
    "refused": N_("A view that is refused"),
    "attention": N_("The attention chain"),
    "size-one": N_("Dims of size 1"),
    "expand": N_("Expand: stride 0"),
    "flip": N_("Flip"),
    "slice": N_("Slice with a step"),
}
LINK = ("shape", "chain", "stage")  # what the URL says of this page
REMEMBERED = 50  # steps of undo


# --- what is looked at ----------------------------------------------------------------------------


def current() -> tuple[Shape, Chain]:
    """The shape and chain of this session: those in the URL if it says something new, as when a
    link brought the visitor here; else what was here before; else the opening example."""
    link = {name: st.query_params[name] for name in LINK if name in st.query_params}
    if "memory" not in st.session_state or (link and link != st.session_state["memory_link"]):
        st.session_state["memory_past"] = st.session_state.get("memory_past", [])
        st.session_state["memory_link"] = link
        st.session_state["memory"] = _linked("shape", link), _linked("chain", link)
        stage = link.get("stage", "")
        st.session_state["memory_stage"] = int(stage) if re.fullmatch(r"\d{1,2}", stage) else None
    return st.session_state["memory"]


def _linked(name: str, link: dict[str, str]) -> Shape | Chain:
    """`shape` or `chain` as the link says it; the example's where it says nothing readable. A link
    with only a shape means that bare shape."""
    if name in link:
        try:
            return {"shape": read_shape, "chain": read_chain}[name](link[name])
        except ChainError as error:
            _complain(name, error, link[name])
    return () if name == "chain" and link else getattr(START, name)


def put(shape: Shape, chain: Chain, stage: int | None = None) -> None:
    """Look at another shape and chain, at its last stage unless one is named."""
    before = current()
    if (shape, chain) != before:
        past = [*st.session_state["memory_past"], (*before, st.session_state["memory_stage"])]
        st.session_state["memory_past"] = past[-REMEMBERED:]
    _show(shape, chain, stage)


def _show(shape: Shape, chain: Chain, stage: int | None) -> None:
    st.session_state["memory"], st.session_state["memory_stage"] = (shape, chain), stage
    st.session_state.pop("memory_problems", None)


def undo() -> None:
    """Bring back what was looked at before the last change."""
    if st.session_state["memory_past"]:
        _show(*st.session_state["memory_past"].pop())


def looked_at(found: Walk) -> int:
    """The stage that is shown: the one chosen, else the last."""
    chosen, last = st.session_state["memory_stage"], len(found.stages) - 1
    return last if chosen is None else min(chosen, last)


def choose_stage() -> None:
    """Called when the component reports another stage, with the number of the pick."""
    st.session_state["memory_stage"], _pick = st.session_state["memory_strides"]["stage"]


def remove() -> None:
    """Called when the component reports an operation to be taken out of the chain."""
    place = st.session_state["memory_strides"]["remove"]
    shape, chain = current()
    put(shape, chain[:place] + chain[place + 1 :])


def write_link(found: Walk) -> None:
    """Let the address say what is looked at, so that it can be sent."""
    stage = looked_at(found)
    link = {"shape": write_shape(found.shape), "chain": write_chain(found.chain)}
    if stage != len(found.stages) - 1:
        link["stage"] = str(stage)
    st.session_state["memory_link"] = {name: text for name, text in link.items() if text}
    write_url(LINK, st.session_state["memory_link"])


# --- bad input ------------------------------------------------------------------------------------


def _complain(place: str, error: ChainError, text: str) -> None:
    st.session_state.setdefault("memory_problems", {})[place] = (error, text)


def _problem(place: str) -> tuple[ChainError, str] | None:
    return st.session_state.get("memory_problems", {}).get(place)


def _text_box(place: str, label: str, shown: str, read: Callable, **options) -> None:
    """A box that shows what is, unless what was typed could not be read: then that, and why."""
    problem = _problem(place)
    key = f"memory_{place}"
    st.session_state[key] = problem[1] if problem else shown

    def take():
        text = st.session_state[key]
        shape, chain = current()
        try:
            taken = read(text)
        except ChainError as error:
            _complain(place, error, text)
            return
        problems = st.session_state.get("memory_problems", {})
        put(*((taken, chain) if place == "shape" else (shape, taken)))
        problems.pop(place, None)
        st.session_state["memory_problems"] = problems  # the other box keeps what was typed there

    st.text_input(label, key=key, on_change=take, **options)
    if problem:
        st.error(escaped(sentence(problem[0])), icon=":material/error:")


# --- the controls ---------------------------------------------------------------------------------


def controls(found: Walk) -> None:
    """Where to start, the shape, the chain as text, and the next operation."""
    _examples(found)
    left, right = st.columns([1, 3])
    with left:
        _text_box("shape", _("Shape"), ", ".join(map(str, found.shape)), read_shape, max_chars=60)
    with right:
        _text_box(
            "chain",
            _("Chain"),
            write_chain(found.chain),
            read_chain,
            placeholder="transpose(1,2).contiguous()",
            max_chars=600,
        )
    with st.container(horizontal=True, vertical_alignment="bottom", border=True):
        _next(found)
        with st.container(horizontal=True, width="content"):
            _ways_back(found)
    if problem := _problem("next"):
        st.error(escaped(sentence(problem[0])), icon=":material/error:")


def chosen_preset(found: Walk) -> str | None:
    """The name of the example that is looked at, if it is one."""
    looked_at = (found.shape, found.chain)
    return next((name for name, preset in PRESETS.items() if preset[:2] == looked_at), None)


def _examples(found: Walk) -> None:
    st.session_state["memory_preset"] = chosen_preset(found)
    labels = {name: _(label) for name, label in PRESET_LABELS.items()}
    st.pills(
        _("Examples"),
        list(PRESETS),
        key="memory_preset",
        format_func=labels.get,
        on_change=lambda: _open(st.session_state["memory_preset"]),
        wrap=True,
    )


def _open(name: str | None) -> None:
    if name:
        put(*PRESETS[name][:2])


def _next(found: Walk) -> None:
    """Choose the next operation and its numbers, with what the last shape allows."""
    stopped = found.failure is not None
    name = st.selectbox(_("Next operation"), list(FORMS), key="memory_next", index=2, width=190)
    with (
        st.form("memory_add", border=False, width="content"),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        keys = argument_boxes(name, found.stages[-1].shape)
        st.form_submit_button(
            _("Add"),
            icon=":material/add:",
            on_click=lambda: _add(found, name, [st.session_state[key] for key in keys]),
            disabled=stopped,
            help=_("Cure or remove the refused operation first.") if stopped else None,
        )


def _ways_back(found: Walk) -> None:
    st.button(
        _("Undo"),
        icon=":material/undo:",
        key="memory_undo",
        on_click=undo,
        disabled=not st.session_state["memory_past"],
    )
    st.button(
        _("Clear chain"),
        icon=":material/backspace:",
        key="memory_clear",
        on_click=lambda: put(found.shape, ()),
        disabled=not found.chain,
    )
    st.button(
        _("Reset"),
        icon=":material/restart_alt:",
        key="memory_reset",
        on_click=lambda: put(*START[:2]),
        help=_("Back to the opening example. Undo brings your chain back."),
    )


def _add(found: Walk, name: str, values: list) -> None:
    """Append the operation. Sizes that do not fit are told here; a stride that does not is a case
    to look at, so that operation is taken in and refused in sight."""
    numbers = written(values)
    try:
        chain = read_chain(f"{write_chain(found.chain)}.{name}({numbers})")
        if len(chain) != len(found.chain) + 1:
            raise ChainError("chain-text", text=numbers[:40])
        failure = walk(found.shape, chain).failure
        if failure and failure.error:
            raise failure.error
    except ChainError as error:
        return _complain("next", error, "")
    return put(found.shape, chain)
