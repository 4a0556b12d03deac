"""Hard against soft look-up, and the book whose card lies."""

from dataclasses import replace

import streamlit as st

from core.experiments.library import (
    LONGEST,
    Found,
    Shelf,
    course,
    dictionary,
    distance,
    honesty,
    look,
)
from core.figures import CONFIG, bars, panels
from core.figures import softmax as figures
from core.numbers import write
from parts.heads_tables import Cell, show, table
from parts.library_edit import forget
from parts.library_shelf import TEMPERATURES, keep
from parts.state import escaped
from parts.text import _, prose

ALONG = tuple(round(0.01 * 10 ** (i / 12), 5) for i in range(37))  # 0.01 … 10
DRAWN = 5  # books in the chart of temperatures: more lines cannot be told apart
LYING = 0.5  # cosine of card and contents below which a card is said to lie


def dark() -> bool:
    return st.context.theme.type == "dark"


# --- hard and soft ----------------------------------------------------------------------------


def hard_and_soft(shelf: Shelf, question: str, temperature: float) -> None:
    """Three ways to look up, side by side; then the shares against temperature."""
    found = look(shelf, question, temperature)
    st.markdown(prose("library/hard_soft"))
    show(_ways(shelf, question, found))
    left, right = st.columns(2, gap="large")
    with left:
        _bars(shelf, found)
    with right:
        _course(shelf, question, temperature, found)
    coldest = look(shelf, question, TEMPERATURES[0])
    facts = {
        "tau": write(temperature),
        "others": write(distance(found), 3),
        "coldest": write(TEMPERATURES[0]),
        "cold_others": write(distance(coldest), 3),
        "tied": found.tied,
        "title": escaped(shelf.books[found.hard].title),
        "root": write(len(shelf.topics) ** 0.5, 3),
        "usual": write(distance(look(shelf, question, len(shelf.topics) ** 0.5)), 3),
        "even": write(1 - 1 / len(shelf.books), 3),
    }
    st.markdown(prose("library/tied" if found.tied > 1 else "library/cold", **facts))
    st.markdown(prose("library/root", **facts))


def _ways(shelf: Shelf, question: str, found: Found) -> str:
    exact = dictionary(shelf, question)
    said = "KeyError" if exact is None else shelf.books[exact].title
    hard = shelf.books[found.hard].title
    order = sorted(range(len(shelf.books)), key=lambda i: -found.shares[i])[:3]
    soft = "; ".join(f"{shelf.books[i].title} {write(found.shares[i], 2)}" for i in order)
    nothing = _("nothing")
    rows = [
        (_("dictionary"), [Cell("{card: book}[question]", code=True), said,
                           nothing if exact is None else _mixture(shelf, _value(found, exact))]),
        (_("hard"), [Cell("V[scores.argmax()]", code=True), hard,
                     _mixture(shelf, _value(found, found.hard))]),
        (_("soft"), [Cell("softmax(scores / τ) @ V", code=True), f"{soft} …",
                     _mixture(shelf, found.output)]),
    ]  # fmt: skip
    head = (_("look-up"), _("how"), _("which book"), _("what is read"))
    return table(_("Three ways to look up"), head, rows, name="ways")


def _value(found: Found, place: int) -> list[float]:
    return found.trace["V"][place].tolist()


def _mixture(shelf: Shelf, value: list[float]) -> str:
    """The topics of a value, largest first, at most three."""
    order = sorted(range(len(value)), key=lambda i: -value[i])[:3]
    named = [f"{shelf.topics[i].name} {write(value[i], 2)}" for i in order if value[i] > 0.005]
    return ", ".join(named) or _("nothing")


def _bars(shelf: Shelf, found: Found) -> None:
    hard = [float(place == found.hard) for place in range(len(shelf.books))]
    figure = bars(
        [book.title for book in shelf.books],
        {_("soft"): found.shares, _("hard"): hard},
        x_title=_("share"),
        sideways=True,
        dark=dark(),
        height=130 + 34 * len(shelf.books),
    )
    figure.update_layout(legend=panels.LEGEND, margin_t=panels.TOP)
    alt = _("Share of each book, soft: {shares}. Hard: all of {title}.").format(
        shares=", ".join(write(share, 2) for share in found.shares),
        title=shelf.books[found.hard].title,
    )
    st.plotly_chart(figure, theme=None, key="library_bars", config=CONFIG, alt=alt)


def _course(shelf: Shelf, question: str, temperature: float, found: Found) -> None:
    order = sorted(range(len(shelf.books)), key=lambda i: -found.scores[i])[:DRAWN]
    lines = course(shelf, question, ALONG)
    figure = figures.temperature(
        ALONG,
        [lines[i] for i in order],
        at=temperature,
        names=[shelf.books[i].title for i in order],
        title=_("temperature τ"),
        dark=dark(),
    )
    figure.update_layout(height=470)
    alt = _(
        "Share of the {count} nearest books against temperature: at τ = {cold} one has {first}, "
        "at τ = {hot} it has {last}."
    ).format(
        count=len(order), cold=write(ALONG[0]), hot=write(ALONG[-1]),
        first=write(lines[order[0]][0], 2), last=write(lines[order[0]][-1], 2),
    )  # fmt: skip
    st.plotly_chart(figure, theme=None, key="library_course", config=CONFIG, alt=alt)


# --- a card that lies -------------------------------------------------------------------------


def lying(shelf: Shelf, question: str, temperature: float) -> None:
    """Every book found by its card and by its contents, and the card that fits least."""
    match = honesty(shelf)
    by_card, by_contents = (look(shelf, question, temperature, by) for by in ("card", "contents"))
    least = min(range(len(match)), key=match.__getitem__)
    book = shelf.books[least]
    facts = {
        "title": escaped(book.title),
        "cosine": write(match[least], 2),
        "card": write(by_card.shares[least], 2),
        "contents": write(by_contents.shares[least], 2),
        "read": escaped(_mixture(shelf, _value(by_card, least))),
        "with_card": escaped(_mixture(shelf, by_card.output)),
        "with_contents": escaped(_mixture(shelf, by_contents.output)),
    }
    st.markdown(prose("library/lies" if match[least] < LYING else "library/honest", **facts))
    columns = zip(shelf.books, match, by_card.shares, by_contents.shares, strict=True)
    rows = [
        (b.title, [write(m, 2), Cell(write(c, 3), share=c), Cell(write(v, 3), share=v)])
        for b, m, c, v in columns
    ]
    head = (_("book"), "cos(k, v)", _("share, keys from cards"), _("share, keys from contents"))
    show(table(_("Found by card, found by contents"), head, rows, current=least, name="lies"))
    st.button(
        _("Write the contents on the card of “{title}”").format(title=escaped(book.title)),
        key="library_honest",
        disabled=match[least] > 0.999,
        on_click=lambda: _make_honest(shelf, least),
    )
    st.markdown(prose("library/two_faces"))


def _make_honest(shelf: Shelf, place: int) -> None:
    books = list(shelf.books)
    counted = [word for word, places in shelf.words(books[place].contents) if places]
    books[place] = replace(books[place], card=", ".join(counted)[: LONGEST["card"]])
    keep(shelf=replace(shelf, books=tuple(books)))
    forget()
