"""What the library page is asked: question, temperature and shelf; in the session and the link.

Nothing is stored for what the reader has left as it was, so that it follows the language.
"""

import json
from functools import cache

import streamlit as st

from core import InputError
from core.experiments.library import LONGEST, Book, Shelf, Topic
from core.numbers import write
from parts.heads_tables import show, table
from parts.state import escaped, sentence, write_url
from parts.text import ASSETS, N_, _, language, prose

TEMPERATURES = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0)
USUAL = 0.2
STYLE = ASSETS / "library/library.css"
OWNED = ("question", "temperature", "shelf")
NAMES = {
    "question": N_("The question"),
    "title": N_("The title"),
    "card": N_("The card"),
    "contents": N_("The contents"),
    "topic": N_("The name of the topic"),
    "words": N_("The list of words"),
    "books": N_("The number of books"),
    "topics": N_("The number of topics"),
    "shelf": N_("The shelf"),
}


@cache
def given(tongue: str) -> tuple[str, Shelf]:
    """The question and the shelf that the page opens with."""
    plain = json.loads((ASSETS / f"library/{tongue}.json").read_text("utf-8"))
    topics = tuple(Topic(*row) for row in plain["topics"])
    return plain["question"], Shelf(topics, tuple(Book(*row) for row in plain["books"]))


def kept() -> dict:
    """What the reader has changed: question, temperature, shelf; at first what a link says."""
    if "library" not in st.session_state:
        st.session_state["library"], query = {}, st.query_params
        if "question" in query:
            keep(question=query["question"][: LONGEST["question"]])
        if query.get("temperature") in map(str, TEMPERATURES):
            keep(temperature=float(query["temperature"]))
        if "shelf" in query:
            try:
                keep(shelf=Shelf.from_link(query["shelf"]))
            except InputError as problem:
                complain_later("shelf", problem)
    return st.session_state["library"]


def keep(**values) -> None:
    """Remember what was changed; None, or what the page opens with, forgets it."""
    question, shelf = given(language())
    usual = {"question": question, "shelf": shelf, "temperature": USUAL}
    changed = kept() | values
    st.session_state["library"] = {
        name: value for name, value in changed.items() if value not in (None, usual[name])
    }
    st.session_state.pop("library problem", None)


def current() -> tuple[Shelf, str, float]:
    """Shelf, question and temperature as they now are."""
    question, shelf = given(language())
    own = kept()
    return (
        own.get("shelf", shelf),
        own.get("question", question),
        own.get("temperature", USUAL),
    )


def controls() -> tuple[Shelf, str, float]:
    """The question and the temperature; returns them with the shelf."""
    shelf, question, temperature = current()
    left, right = st.columns([3, 2], gap="large")
    left.text_input(
        _("The reader's question"),
        key=_set("library_question", question),
        max_chars=LONGEST["question"],
        on_change=lambda: keep(question=st.session_state["library_question"]),
    )
    right.select_slider(
        _("Temperature τ: scores are divided by it"),
        TEMPERATURES,
        key=_set("library_temperature", temperature),
        format_func=write,
        on_change=lambda: keep(temperature=st.session_state["library_temperature"]),
    )
    with left:
        _counted(shelf, question)
    own = kept()
    address = {name: str(own[name]) for name in ("question", "temperature") if name in own}
    write_url(OWNED, address | ({"shelf": own["shelf"].to_link()} if "shelf" in own else {}))
    return shelf, question, temperature


def _set(key: str, value):
    """Let the widget show the value: what is kept is the truth, the widget its picture."""
    if st.session_state.get(key) != value:
        st.session_state[key] = value
    return key


def _counted(shelf: Shelf, question: str) -> None:
    """Which words of the question count, and for what."""
    words = shelf.words(question)
    known = [
        f"{word} → {', '.join(shelf.topics[place].name for place in places)}"
        for word, places in words
        if places
    ]
    if known:
        st.markdown(_("Counted: {words}.").format(words=escaped("; ".join(known))))
    else:
        st.warning(prose("library/unknown"), icon=":material/help:")
    if passed := [word for word, places in words if not places]:
        st.markdown(_("In no list: {words}.").format(words=escaped(", ".join(passed))))


def shelf_table(shelf: Shelf) -> None:
    """Every book with its card and contents, and how they become vectors."""
    head = (_("book"), _("card (key)"), _("contents (value)"))
    rows = [(book.title, [book.card, book.contents]) for book in shelf.books]
    st.html(STYLE)
    show(table(_("The shelf"), head, rows, name="shelf"))
    with st.expander(_("How words become vectors")):
        st.markdown(prose("library/vectors", topics=len(shelf.topics)))
        rows = [(topic.name, [topic.words]) for topic in shelf.topics]
        show(table(_("The topics and their words"), (_("topic"), _("words")), rows, name="topics"))


def complain_later(place: str, problem: InputError) -> None:
    """Remember a problem until the next change, to be shown beside `place`."""
    st.session_state["library problem"] = (place, problem)


def complain(*places: str) -> None:
    """Show the remembered problem if it belongs here."""
    place, problem = st.session_state.get("library problem", (None, None))
    if place in places:
        named = _(NAMES[problem.facts["name"]])
        told = InputError(problem.id, **(problem.facts | {"name": named}))
        st.error(escaped(sentence(told)), icon=":material/error:")
