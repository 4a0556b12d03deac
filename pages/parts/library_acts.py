"""The three acts of a look-up, each in the microscope and as a table of books."""

import math

import streamlit as st

from core.experiments.library import Found, Shelf, look
from core.manifest import manifest
from core.numbers import write
from parts import microscope
from parts.heads_tables import Cell, show, table
from parts.state import write_url
from parts.text import N_, _, prose

ACTS = {
    "compare": ("scores", N_("1 · Compare: QKᵀ")),
    "share": ("weights", N_("2 · Share: softmax")),
    "read": ("output", N_("3 · Read: A·V")),
}
ACT_OF = {"Q": "compare", "K": "compare", "V": "read", "scores": "compare", "scaled": "share",
          "weights": "share", "output": "read"}  # fmt: skip
SHORT = 14  # letters of a title over a column


def acts(shelf: Shelf, question: str, temperature: float) -> None:
    """Choose an act; the microscope goes there, and its own steps choose the act."""
    found = look(shelf, question, temperature)
    symbols = list(found.trace)
    symbol = _symbol()
    if symbol not in symbols:
        symbol = "scores"
    act = ACT_OF[symbol]
    if st.session_state.get("library_act") != act:
        st.session_state["library_act"] = act
    st.segmented_control(
        _("Act"),
        list(ACTS),
        key="library_act",
        format_func=lambda name: _(ACTS[name][1]),
        on_change=lambda: _go(ACTS[st.session_state["library_act"]][0]),
        required=True,
        wrap=True,
        label_visibility="collapsed",
    )
    facts = {"tau": write(temperature), "best": write(max(found.scores), 3)}
    facts |= {"books": len(shelf.books), "topics": len(shelf.topics)}
    facts |= {"share": write(max(found.shares), 3), "sum": write(sum(found.output), 3)}
    st.markdown(prose(f"library/{act}", **facts))
    described, values = _described(found, shelf)
    microscope.show(
        described,
        values,
        key="library_microscope",
        step=symbols.index(symbol),
        on_change=lambda chosen: _go(symbols[chosen.step]),
    )
    write_url(("step",), {"step": symbol} if symbol != "scores" else {})
    {"compare": _compared, "share": _shared, "read": _read}[act](shelf, found, temperature)


def _symbol() -> str:
    if "library_step" not in st.session_state:
        st.session_state["library_step"] = st.query_params.get("step", "scores")
    return st.session_state["library_step"]


def _go(symbol: str) -> None:
    st.session_state["library_step"] = symbol


def _described(found: Found, shelf: Shelf):
    topics = [topic.name for topic in shelf.topics]
    titles = [book.title for book in shelf.books]
    labels = {"S": ["q"], "T": titles, "d_k": topics, "d_v": topics}
    plain, values = manifest(found.trace, labels=labels)
    dims = {name: facts | {"name": _(facts["name"])} for name, facts in plain["dims"].items()}
    return plain | {"dims": dims}, values


# --- tables -----------------------------------------------------------------------------------


def _compared(shelf: Shelf, found: Found, temperature: float) -> None:
    """Each card as counts and as a vector, with its score."""
    head = (_("book"), *(topic.name for topic in shelf.topics), "q·k")
    rows = [(_("the question"), _vector(shelf, found.asked, found.trace["Q"][0].tolist(), ""))]
    for book, key, score in zip(shelf.books, found.trace["K"].tolist(), found.scores, strict=True):
        counts = shelf.counts(book.card)
        rows.append((book.title, _vector(shelf, counts, key, Cell(write(score, 3), share=score))))
    show(table(_("Count of words → vector of length 1"), head, rows, rule=1, name="compare"))


def _vector(shelf: Shelf, counts, vector, last) -> list:
    cells = [f"{n} → {write(x, 3)}" if n else "0" for n, x in zip(counts, vector, strict=True)]
    return [*cells, last]


def _shared(shelf: Shelf, found: Found, temperature: float) -> None:
    """Score, score / τ, its exponential, and the share; the sums under them."""
    divided = [score / temperature for score in found.scores]
    top = max(divided)
    raised = [math.exp(x - top) for x in divided]
    columns = zip(shelf.books, found.scores, divided, raised, found.shares, strict=True)
    rows = [
        (book.title, [write(s, 3), write(x, 3), write(e, 3), Cell(write(w, 3), share=w)])
        for book, s, x, e, w in columns
    ]
    rows.append((_("sum"), ["", "", write(sum(raised), 3), write(sum(found.shares), 3)]))
    head = (_("book"), "q·k", "q·k / τ", _("exp(· − largest)"), _("share"))
    show(table(_("From scores to shares"), head, rows, rule=len(rows) - 1, name="share"))


def _read(shelf: Shelf, found: Found, temperature: float) -> None:
    """Share times contents for every book; their sum is what the reader takes home."""
    head = (_("book"), _("share"), *(topic.name for topic in shelf.topics))
    rows = []
    values = found.trace["V"].tolist()
    for book, share, value in zip(shelf.books, found.shares, values, strict=True):
        cells = [Cell(write(share * v, 2), share=share * v) if v else "0" for v in value]
        rows.append((book.title, [write(share, 3), *cells]))
    total = [Cell(write(x, 3), share=x) for x in found.output]
    rows.append((_("sum: what is read"), [write(sum(found.shares), 3), *total]))
    show(table(_("Share × contents"), head, rows, rule=len(rows) - 1, name="read"))
