"""Pairs drawn from the grammar: distinct, split by what they combine, and turned into numbers.

A combination is who does what to whom or where. One in ten is held out whole: no sentence of the
training part has the same subject, verb and object or place, in whatever tense and number.

>>> pairs = draw(200, seed=0)
>>> len({pair.en for pair in pairs})
200
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from random import Random

import torch

from core.translator import grammar
from core.translator.grammar import Pair
from core.translator.model import BEGIN, END, PAD

SIZE, SEED = 40_000, 0
MARKS = ("<pad>", "<begin>", "<end>")


def draw(size: int = SIZE, seed: int = SEED) -> list[Pair]:
    """`size` pairs with distinct English sentences, the same ones for the same seed."""
    rng, found = Random(seed), {}
    while len(found) < size:
        pair = grammar.sentence(rng)
        found.setdefault(pair.en, pair)
    return list(found.values())


def held_out(pair: Pair) -> bool:
    """Whether a pair's combination is kept from training: one in ten, by its checksum.

    Those of "bank" count as one with the sense it has, so that both senses are held out.
    """
    if not pair.combination:
        return False
    return zlib.crc32(pair.combination.encode()) % 10 == 0


def split(pairs: Iterable[Pair]) -> tuple[list[Pair], list[Pair]]:
    """(trained on, held out)."""
    parts = ([], [])
    for pair in pairs:
        parts[held_out(pair)].append(pair)
    return parts


def vocabulary(sentences: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Every word, in alphabetical order, after the three marks."""
    return (*MARKS, *sorted({word for sentence in sentences for word in sentence}))


def numbers(sentences: Sequence[Sequence[str]], words: Sequence[str], *, marks: bool):
    """Ids (B, longest), padded with 0; with `marks`, between <begin> and <end>."""
    ids = {word: i for i, word in enumerate(words)}
    rows = [[ids[word] for word in sentence] for sentence in sentences]
    rows = [[BEGIN, *row, END] for row in rows] if marks else rows
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])
