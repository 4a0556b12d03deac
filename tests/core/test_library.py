"""The library: counts are counts, the engine's shares are softmax, and a card may lie."""

import base64
import json
import math
import zlib
from pathlib import Path

import pytest
import torch

from core import InputError
from core.experiments.library import (
    LONGEST,
    MOST_BOOKS,
    Book,
    Shelf,
    Topic,
    course,
    dictionary,
    distance,
    honesty,
    look,
    snippet,
)

FOLDER = Path(__file__).resolve().parents[2] / "assets/library"


def opening(lang: str) -> tuple[str, Shelf]:
    plain = json.loads((FOLDER / f"{lang}.json").read_text("utf-8"))
    topics = tuple(Topic(*row) for row in plain["topics"])
    return plain["question"], Shelf(topics, tuple(Book(*row) for row in plain["books"]))


SMALL = Shelf(
    (Topic("sea", "ship, sea"), Topic("food", "bread, sea")),
    (Book("Log", "ship", "ship bread bread bread"), Book("Loaf", "bread", "ship")),
)


def test_a_word_counts_as_it_is_spelt_and_for_every_topic_that_lists_it():
    assert SMALL.counts("Ship, ships; SHIP bread!") == [2, 1]
    assert SMALL.counts("the sea") == [1, 1]
    assert SMALL.words("no ship") == [("no", ()), ("ship", (0,))]


def test_in_chinese_the_longest_listed_word_is_taken():
    shelf = Shelf((Topic("植物", "花，花园"), Topic("机器", "机器，机器人")), (Book("书", "", ""),))
    assert shelf.words("花园里的机器人与机器，AI花") == [
        ("花园", (0,)), ("里的", ()), ("机器人", (1,)), ("与", ()), ("机器", (1,)), ("ai", ()),
        ("花", (0,)),
    ]  # fmt: skip
    assert shelf.counts("花园里的机器人") == [1, 1]


def test_both_languages_open_with_the_same_counts():
    (asked, english), (gefragt, chinese) = opening("en"), opening("zh")
    assert english.counts(asked) == chinese.counts(gefragt) == [2, 2, 0, 0, 0, 0, 0, 0]
    assert len(english.books) >= 8
    for one, other in zip(english.books, chinese.books, strict=True):
        assert english.counts(one.card) == chinese.counts(other.card), one.title
        assert english.counts(one.contents) == chinese.counts(other.contents), one.title
        assert sum(english.counts(one.card)) > 0


def test_shares_are_softmax_of_cosines_and_the_result_is_a_mixture():
    found = look(SMALL, "ship bread bread", temperature=0.5)
    q = (1 / 5**0.5, 2 / 5**0.5)
    assert found.scores == pytest.approx(q)
    e = [math.exp(x / 0.5) for x in q]
    shares = [x / sum(e) for x in e]
    assert found.shares == pytest.approx(shares)
    assert found.output == pytest.approx(
        [shares[0] * 0.25 + shares[1] * 1.0, shares[0] * 0.75], rel=1e-5
    )
    assert sum(found.output) == pytest.approx(1)


def test_a_falling_temperature_goes_to_the_hard_look_up():
    question, shelf = opening("en")
    others = [distance(look(shelf, question, tau)) for tau in (10.0, 1.0, 0.3, 0.1, 0.03, 0.01)]
    assert others == sorted(others, reverse=True)
    assert others[0] == pytest.approx(0.9, abs=0.02)
    assert others[-1] < 1e-9
    found = look(shelf, question, 0.01)
    assert found.hard == 1
    hard = found.trace["V"][found.hard]
    assert torch.allclose(found.trace["output"][0], hard, atol=1e-6)
    lines = course(shelf, question, (0.01, 10.0))
    assert [line[0] for line in lines] == pytest.approx([0, 1] + [0] * 8, abs=1e-9)


def test_equal_scores_keep_equal_shares_at_every_temperature():
    found = look(SMALL, "ship bread", temperature=0.01)
    assert found.tied == 2
    assert found.shares == pytest.approx([0.5, 0.5])
    assert found.hard == 0


def test_a_question_of_unknown_words_gives_an_even_row():
    assert look(SMALL, "quark").shares == [0.5, 0.5]


def test_the_card_decides_whether_and_the_contents_what():
    question, shelf = opening("en")
    match = honesty(shelf)
    liar = match.index(min(match))
    assert (shelf.books[liar].title, match[liar]) == ("Under the Stars", 0)
    assert min(m for place, m in enumerate(match) if place != liar) > 0.8
    by_card, by_contents = look(shelf, question), look(shelf, question, by="contents")
    assert by_card.shares[liar] == pytest.approx(0.18, abs=0.001)
    assert by_contents.shares[liar] < 0.01
    food = [topic.name for topic in shelf.topics].index("food")
    assert by_card.output[food] > 10 * by_contents.output[food]


def test_a_dictionary_needs_the_exact_key():
    assert dictionary(SMALL, "ship") == 0
    assert dictionary(SMALL, "ships") is None


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_code_shown_computes_the_same(lang, capsys):
    question, shelf = opening(lang)
    scope: dict = {}
    exec(snippet(shelf, question, 0.15), scope)
    found = look(shelf, question, 0.15)
    assert torch.allclose(scope["weights"], found.trace["weights"])
    assert torch.allclose(scope["output"], found.trace["output"])
    assert torch.equal(scope["hard"][0], found.trace["V"][found.hard])


def test_code_holds_titles_of_any_kind():
    title = 'a"\'\n""" #'
    exec(snippet(Shelf(SMALL.topics, (Book(title, "", ""),)), "x", 1.0), scope := {})
    assert scope["titles"] == [title]


def test_a_link_brings_the_shelf_back():
    for lang in ("en", "zh"):
        shelf = opening(lang)[1]
        assert Shelf.from_link(shelf.to_link()) == shelf
        assert len(shelf.to_link()) < 2000


def packed(plain) -> str:
    return base64.urlsafe_b64encode(zlib.compress(json.dumps(plain).encode())).decode()


@pytest.mark.parametrize(
    "text",
    ["", "%%%", "AAAA", packed([]), packed([[], []]), packed([[["a", 1]], [["a", "b", "c"]]]),
     packed({"a": 1, "b": 2}), packed("x" * 100_000), packed([[["a", "b"]], [["a", "b"]]]),
     packed([[["a", "b"]], [["t", "x" * 500, ""]]])],
)  # fmt: skip
def test_a_broken_link_is_refused(text):
    with pytest.raises(InputError):
        Shelf.from_link(text)


@pytest.mark.parametrize(
    ("make", "facts"),
    [
        (lambda: Book(" ", "", ""), {"name": "title"}),
        (lambda: Book("a", "x" * 121, ""), {"name": "card", "got": 121, "most": LONGEST["card"]}),
        (lambda: Book("a", "\ud800", ""), {"name": "card"}),
    ],
)
def test_books_that_do_not_fit_are_refused_by_name(make, facts):
    with pytest.raises(InputError) as refused:
        Shelf(SMALL.topics, (make(),))
    assert refused.value.facts == facts


def test_a_shelf_has_room_for_so_many():
    with pytest.raises(InputError, match=f"at most {MOST_BOOKS}"):
        Shelf(SMALL.topics, SMALL.books[:1] * (MOST_BOOKS + 1))
    with pytest.raises(InputError):
        Shelf(SMALL.topics, ())
