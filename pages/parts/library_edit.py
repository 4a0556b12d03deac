"""Changing the shelf: books with their cards and contents, topics with their words."""

from dataclasses import astuple, replace

import streamlit as st

from core import InputError
from core.experiments.library import LONGEST, MOST_BOOKS, MOST_TOPICS, Book, Shelf, Topic
from parts.library_shelf import complain, complain_later, current, given, keep
from parts.text import N_, _, language, prose

NEW = -1  # stands for a book or topic that is not on the shelf yet
KINDS = {"books": (Book, ("title", "card", "contents")), "topics": (Topic, ("topic", "words"))}
LABELS = {
    "title": N_("Title"),
    "card": N_("Card: the words it is found by"),
    "contents": N_("Contents: what is read in it"),
    "topic": N_("Topic"),
    "words": N_("Its words, commas between"),
}


def editing(shelf: Shelf) -> None:
    """A form for one book, a form for one topic, and the way back."""
    complain("shelf")
    box = st.expander(_("Change the shelf"), key="library_change", on_change="rerun")
    if not box.open:
        return
    with box:
        st.markdown(prose("library/editing", books=MOST_BOOKS, topics=MOST_TOPICS))
        books, topics = st.columns(2, gap="large")
        with books:
            _form("books", _("Book"), _("a new book"), [b.title for b in shelf.books])
        with topics:
            _form("topics", _("Topic to change"), _("a new topic"), [t.name for t in shelf.topics])
        st.button(
            _("Back to the first shelf"),
            icon=":material/restart_alt:",
            disabled=shelf == given(language())[1],
            on_click=_restore,
            key="library_restore",
        )


def _form(side: str, label: str, new: str, names: list[str]) -> None:
    """Choose one, change its texts, save or remove it. `side`: "books" or "topics"."""
    shelf = current()[0]
    chosen = st.selectbox(
        label,
        [*range(len(names)), NEW],
        key=_within(side, len(names)),
        format_func=lambda place: f"＋ {new}" if place == NEW else names[place],
    )
    _kind, fields = KINDS[side]
    had = ("",) * len(fields) if chosen == NEW else astuple(getattr(shelf, side)[chosen])
    for name, text in zip(fields, had, strict=True):
        key = _key(side, name, chosen)
        draw = st.text_area if name in ("contents", "words") else st.text_input
        st.session_state.setdefault(key, text)
        draw(_(LABELS[name]), key=key, max_chars=LONGEST[name])
    complain(*fields, side)
    with st.container(horizontal=True):
        st.button(
            _("Put it on the shelf") if chosen == NEW else _("Save"),
            key=f"library_save_{side}",
            type="primary",
            on_click=lambda: _save(side, chosen),
        )
        st.button(
            _("Remove"),
            key=f"library_remove_{side}",
            disabled=chosen == NEW or len(names) < 2,
            on_click=lambda: _put(side, chosen, None),
        )


def _within(side: str, count: int) -> str:
    """The key of the choice, moved back to where there is something to choose."""
    key = f"library_{side}"
    if st.session_state.get(key, 0) >= count:
        st.session_state[key] = count - 1
    return key


def _key(side: str, name: str, chosen: int) -> str:
    """One per book and language, so that each shows its own text."""
    return f"library_{side}_{name}_{chosen}_{language()}"


def _save(side: str, chosen: int) -> None:
    kind, fields = KINDS[side]
    texts = [st.session_state[_key(side, name, chosen)].strip() for name in fields]
    if _put(side, chosen, kind(*texts)):
        st.session_state[f"library_{side}"] = (
            len(getattr(current()[0], side)) - 1 if chosen == NEW else chosen
        )


def _put(side: str, chosen: int, one: Book | Topic | None) -> bool:
    """Replace, add or remove one; what does not fit is said beside the form and changes nothing."""
    shelf = current()[0]
    all_ = list(getattr(shelf, side))
    if chosen == NEW:
        all_.append(one)
    else:
        all_[chosen : chosen + 1] = [] if one is None else [one]
    try:
        keep(shelf=replace(shelf, **{side: tuple(all_)}))
    except InputError as problem:
        complain_later(problem.facts["name"], problem)
        return False
    forget()
    return True


def _restore() -> None:
    keep(shelf=None)
    forget()


def forget() -> None:
    """Let the forms show the shelf again instead of what was typed."""
    fields = tuple(f"library_{side}_{name}" for side, kind in KINDS.items() for name in kind[1])
    for key in [key for key in st.session_state if str(key).startswith(fields)]:
        del st.session_state[key]
