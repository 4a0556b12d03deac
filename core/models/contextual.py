"""The same word in two sentences: one vector when it enters, and how far apart after each layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from core.errors import require
from core.models.reading import Reading


@dataclass(frozen=True)
class Word:
    """A word of a text and the positions of its tokens."""

    text: str
    places: tuple[int, ...]


@dataclass(frozen=True)
class Apart:
    """`cosine` and Euclidean `distance` of the two vectors."""

    cosine: float
    distance: float


@dataclass(frozen=True)
class Comparison:
    """A word in two texts. `layers[0]`: as it enters, before position; `layers[1]`: with position;
    then after each layer. `heads[(call, head)]`: of what a head gave to the word, as cosine."""

    layers: tuple[Apart, ...]
    heads: dict[tuple[int, int], float]


def words(reading: Reading) -> list[Word]:
    """The words of a text in order; a token of no known word is a word of its own."""
    groups: dict[object, list[int]] = {}
    for place, token in enumerate(reading.tokens):
        if not token.special:
            key = place if token.word is None else ("word", token.word)
            groups.setdefault(key, []).append(place)
    found = []
    for places in groups.values():
        pieces = [reading.tokens[p] for p in places if reading.tokens[p].part == 1]
        found.append(Word("".join(token.text for token in pieces), tuple(places)))
    return found


def shared(a: Reading, b: Reading) -> list[str]:
    """Words with letters that stand in both texts, longest first, written small."""
    in_b = {word.text.casefold() for word in words(b)}
    found = dict.fromkeys(w.text.casefold() for w in words(a))
    return sorted((w for w in found if w in in_b and any(map(str.isalnum, w))), key=len)[::-1]


def compare(a: Reading, b: Reading, word: str) -> Comparison:
    """A word's vectors in two readings of one model; a word of several tokens by their mean.

    The first such word of each text. Raises InputError where a text does not have it.
    """
    places = []
    for reading in (a, b):
        known = {w.text.casefold(): w.places for w in reversed(words(reading))}
        require(word.casefold() in known, "model-word", word=word, text=reading.text)
        places.append(list(known[word.casefold()]))
    here, there = places
    pairs = zip((a.embedded, *a.hidden), (b.embedded, *b.hidden), strict=True)
    layers = tuple(_apart(x[here].mean(0), y[there].mean(0)) for x, y in pairs)
    heads = {}
    for c, (one, other) in enumerate(zip(a.calls, b.calls, strict=True)):
        if one.kind not in ("self", "encoder"):
            continue
        given = [_given(call, at) for call, at in ((one, here), (other, there))]
        for i, cosine in enumerate(F.cosine_similarity(*given, dim=-1).tolist()):
            heads[c, i] = cosine
    return Comparison(layers, heads)


def _given(call, places: Sequence[int]) -> torch.Tensor:
    """What each head adds to the word, (h, d_v): the mean over its tokens."""
    return call.trace()["output"][0][:, places].mean(1)


def _apart(x, y) -> Apart:
    cosine = 1.0 if torch.equal(x, y) else float(F.cosine_similarity(x, y, dim=0))
    return Apart(cosine, float((x - y).norm()))
