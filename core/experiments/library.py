"""A shelf of books as attention: a question is a query, cards are keys, contents are values.

No vector is learnt here. Every one is a count: how many words of a text stand in the list of each
topic. So each number on screen can be checked by hand.

>>> shelf = Shelf((Topic("sea", "ship, sea"), Topic("food", "bread")),
...               (Book("Log", "ship, sea", "ship bread"), Book("Loaf", "bread", "bread")))
>>> found = look(shelf, "a ship", temperature=0.5)
>>> [round(w, 3) for w in found.shares], found.hard
([0.881, 0.119], 0)
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cached_property, lru_cache

import torch

from core.attention import attend
from core.errors import require
from core.inputs import split_sentence
from core.trace import Trace

MOST_BOOKS, MOST_TOPICS = 16, 12
LONGEST = {"question": 200, "title": 60, "card": 120, "contents": 400, "topic": 30, "words": 300}
COLDEST, HOTTEST = 0.01, 10.0
LINK_BYTES = 16_384  # what a link may unpack to

_BETWEEN = re.compile(r"[\s,，、;；.。:：!！?？|/“”\"()（）《》]+")


@dataclass(frozen=True)
class Topic:
    """One axis of the space: its name, and the words that count for it, commas between."""

    name: str
    words: str


@dataclass(frozen=True)
class Book:
    """`card`: what the book is found by (key). `contents`: what is read in it (value)."""

    title: str
    card: str
    contents: str


@dataclass(frozen=True)
class Shelf:
    """Topics and books, at least one of each. Raises InputError for texts that are too long."""

    topics: tuple[Topic, ...]
    books: tuple[Book, ...]

    def __post_init__(self):
        for name, got, most in (
            ("books", len(self.books), MOST_BOOKS),
            ("topics", len(self.topics), MOST_TOPICS),
        ):
            require(got >= 1, "size-least", name=name, got=got, least=1)
            require(got <= most, "size-most", name=name, got=got, most=most)
        for topic in self.topics:
            _check(topic=topic.name, words=topic.words)
        for book in self.books:
            _check(title=book.title, card=book.card, contents=book.contents)

    @cached_property
    def vocabulary(self) -> dict[str, tuple[int, ...]]:
        """Word -> the topics it counts for."""
        found: dict[str, list[int]] = {}
        for place, topic in enumerate(self.topics):
            for word in dict.fromkeys(_BETWEEN.split(topic.words.casefold())):
                if word:
                    found.setdefault(word, []).append(place)
        return {word: tuple(places) for word, places in found.items()}

    def words(self, text: str) -> list[tuple[str, tuple[int, ...]]]:
        """The words of a text in order, each with the topics it counts for, () for none.

        Where there are spaces a word is what stands between them, as it is spelt: "star" is not
        "stars". In Chinese the longest word of any list that starts at a character is taken;
        characters that start none are passed over, joined into one piece.
        """
        found: list[tuple[str, tuple[int, ...]]] = []
        for piece in filter(None, _BETWEEN.split(text.casefold())):
            found += _match(piece, self.vocabulary)
        return found

    def counts(self, text: str) -> list[int]:
        """How many words of the text each topic holds.

        >>> topics, books = (Topic("sea", "ship"), Topic("food", "bread")), (Book("A", "B", "C"),)
        >>> Shelf(topics, books).counts("ship by ship")
        [2, 0]
        """
        counted = [0] * len(self.topics)
        for _word, places in self.words(text):
            for place in places:
                counted[place] += 1
        return counted

    def to_link(self) -> str:
        """The shelf as a short string for a link."""
        plain = [[astuple(topic) for topic in self.topics], [astuple(book) for book in self.books]]
        text = json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(zlib.compress(text, 9)).decode().rstrip("=")

    @classmethod
    def from_link(cls, text: str) -> Shelf:
        """Read what `to_link` wrote. Raises InputError for anything else."""
        try:
            packed = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
            inflate = zlib.decompressobj()
            plain = json.loads(inflate.decompress(packed, LINK_BYTES))
            topics, books = (tuple(map(tuple, rows)) for rows in plain)
            ok = all(isinstance(x, str) for row in topics + books for x in row)
            shelf = cls(tuple(Topic(*row) for row in topics), tuple(Book(*row) for row in books))
        except (ValueError, TypeError, RecursionError, zlib.error, OverflowError):
            ok = False
        require(ok, "link-value", name="shelf", got=text[:40])
        return shelf


def _check(**texts: str) -> None:
    """No text is empty but card, contents and words, and none too long for a link."""
    for name, text in texts.items():
        if name in ("title", "topic"):
            require(bool(text.strip()), "text-empty", name=name)
        require(len(text) <= LONGEST[name], "text-long", name=name, got=len(text),
                most=LONGEST[name])  # fmt: skip
        require(not any("\ud800" <= c <= "\udfff" for c in text), "text-odd", name=name)


def _match(piece: str, vocabulary: dict) -> list[tuple[str, tuple[int, ...]]]:
    """One run of text between spaces as words of the vocabulary and what lies between them."""
    found, rest, at = [], "", 0
    tokens = split_sentence(piece)  # a Latin word stays whole, a Chinese character stands alone
    while at < len(tokens):
        ends = range(len(tokens), at, -1)
        end = next((e for e in ends if "".join(tokens[at:e]) in vocabulary), None)
        if end is None:
            rest, at = rest + tokens[at], at + 1
            continue
        word = "".join(tokens[at:end])
        found += [(rest, ())] * bool(rest) + [(word, vocabulary[word])]
        rest, at = "", end
    return found + [(rest, ())] * bool(rest)


# --- looking something up ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Found:
    """One look-up: the trace of the engine, and the counts that its vectors were made of."""

    trace: Trace
    asked: tuple[int, ...]

    @property
    def scores(self) -> list[float]:
        return self.trace["scores"][0].tolist()

    @property
    def shares(self) -> list[float]:
        return self.trace["weights"][0].tolist()

    @property
    def output(self) -> list[float]:
        """What is read, by topic."""
        return self.trace["output"][0].tolist()

    @property
    def hard(self) -> int:
        """The book with the largest score, the first of several: what a hard look-up returns."""
        return int(self.trace["scores"][0].argmax())

    @property
    def tied(self) -> int:
        """How many books share the largest score."""
        scores = self.trace["scores"][0]
        return int((scores >= scores.max() - 1e-6).sum())


@lru_cache(maxsize=256)
def look(shelf: Shelf, question: str, temperature: float = 0.2, by: str = "card") -> Found:
    """Ask the shelf. q and k are counts of length 1, v the shares of topics in the contents.

    `temperature` divides the scores in place of √d_k. `by`: "card", or "contents" to make the keys
    from what the values are made from.
    """
    ok = COLDEST <= temperature <= HOTTEST
    known = f"{COLDEST} … {HOTTEST}"
    require(ok, "unknown-choice", name="temperature", got=temperature, known=known)
    _check(question=question)
    asked = shelf.counts(question)
    keys = [shelf.counts(getattr(book, by)) for book in shelf.books]
    contents = [shelf.counts(book.contents) for book in shelf.books]
    trace = attend(unit([asked]), unit(keys), parts(contents), scale=1 / temperature)
    return Found(trace, tuple(asked))


def unit(counts: Sequence[Sequence[int]]) -> torch.Tensor:
    """Rows of length 1, so that a dot product is a cosine. A row of zeros stays.

    >>> unit([[3, 4], [0, 0]])
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    return torch.nn.functional.normalize(torch.tensor(counts, dtype=torch.float32), dim=-1)


def parts(counts: Sequence[Sequence[int]]) -> torch.Tensor:
    """Rows that sum to 1, so that an output is a mixture of topics. A row of zeros stays.

    >>> parts([[3, 1], [0, 0]])
    tensor([[0.7500, 0.2500],
            [0.0000, 0.0000]])
    """
    return torch.nn.functional.normalize(torch.tensor(counts, dtype=torch.float32), p=1, dim=-1)


@lru_cache(maxsize=64)
def course(shelf: Shelf, question: str, along: tuple[float, ...]) -> list[list[float]]:
    """The share of each book at each temperature: one list per book."""
    shares = [look(shelf, question, temperature).shares for temperature in along]
    return [list(book) for book in zip(*shares, strict=True)]


def distance(found: Found) -> float:
    """How far the shares are from a hard look-up: the share that other books have."""
    return sum(share for place, share in enumerate(found.shares) if place != found.hard)


def honesty(shelf: Shelf) -> list[float]:
    """The cosine of card and contents of each book, 0…1: 1 if both speak of the same topics."""
    cards = unit([shelf.counts(book.card) for book in shelf.books])
    contents = unit([shelf.counts(book.contents) for book in shelf.books])
    return (cards * contents).sum(-1).tolist()


def dictionary(shelf: Shelf, question: str) -> int | None:
    """The book whose card says exactly the question, as a Python dict would find it; else None."""
    cards = {book.card: place for place, book in reversed(list(enumerate(shelf.books)))}
    return cards.get(question)


def snippet(shelf: Shelf, question: str, temperature: float) -> str:
    """The PyTorch of `look`: `weights` and `output` are its own, `hard` the one book."""
    rows = {
        "question": [shelf.counts(question)],
        "cards": [shelf.counts(book.card) for book in shelf.books],
        "contents": [shelf.counts(book.contents) for book in shelf.books],
    }
    lines = [
        "import torch",
        "from torch.nn.functional import normalize",
        "",
        f"topics = {[topic.name for topic in shelf.topics]!r}",
        f"titles = {[book.title for book in shelf.books]!r}",
        "# How many words each topic counts: one row per text, one column per topic.",
    ]
    for name, counts in rows.items():
        inner = "".join(f"    {row},\n" for row in counts)
        lines.append(f"{name} = torch.tensor([\n{inner}]).float()")
    return "\n".join(
        (
            *lines,
            "",
            "Q, K = normalize(question, dim=-1), normalize(cards, dim=-1)  # length 1",
            "V = normalize(contents, p=1, dim=-1)  # sum 1",
            "scores = Q @ K.T  # compare",
            f"weights = (scores / {temperature!r}).softmax(-1)  # share",
            "output = weights @ V  # read",
            "hard = V[scores.argmax(-1)]  # one book only",
            "print(dict(zip(titles, weights[0].tolist())))",
            "print(dict(zip(topics, output[0].tolist())))",
            "",
        )
    )
