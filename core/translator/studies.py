"""Questions to a trained network: which head a word rests on, and what company does to a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from core.translator.evaluate import greedy
from core.translator.model import BEGIN, PAD, PLACES
from core.translator.translator import Edits, Run, Translator

NONE = Edits()


@dataclass(frozen=True)
class Without:
    """What is left without one head: the probability of the word in question, the translation."""

    place: str
    layer: int
    head: int
    chance: float
    target: tuple[str, ...]


@torch.no_grad()
def rests_on(
    translator: Translator,
    text: str,
    target: Sequence[str],
    t: int,
    edits: Edits = NONE,
) -> list[Without]:
    """Silence every head in turn, all at once in one batch; the most needed head comes first.

    `t`: position in `target` of the word in question; its probability is taken with the words
    before it given. Heads that `edits` silences already are left out.
    """
    sizes = translator.sizes
    every = [(place, layer, head) for place in PLACES for layer in range(sizes.layers(place))
             for head in range(sizes.h)]  # fmt: skip
    every = [head for head in every if head not in edits.silent]
    cuts = _OneEach(every, edits, sizes.h)
    ids = translator.source_ids(text).expand(len(every), -1)
    wanted = translator.target_ids(target)
    encoded = translator.network.encode(ids, cuts)
    before = torch.tensor([[BEGIN, *wanted[:t]]]).expand(len(every), -1)
    logits, _ = translator.network.decode(before, encoded, ids != PAD, cuts=cuts)
    chances = logits[:, -1].softmax(-1)[:, wanted[t]].tolist()
    rows = greedy(translator.network, ids, cuts)
    targets = [tuple(translator.target_words[i] for i in row) for row in rows]
    found = [
        Without(*head, chance, made)
        for head, chance, made in zip(every, chances, targets, strict=True)
    ]
    return sorted(found, key=lambda one: one.chance)


class _OneEach:
    """`cuts` for a batch in which item i lacks head i, on top of edits that all share."""

    def __init__(self, heads, edits: Edits, h: int):
        self.heads, self.edits, self.h = heads, edits, h

    def __call__(self, place, layer, rows, keys):
        gates = torch.ones(len(self.heads), self.h)
        for i, (where, at, head) in enumerate(self.heads):
            if (where, at) == (place, layer):
                gates[i, head] = 0
        shared = self.edits.gates(place, layer, self.h)
        gates = gates if shared is None else gates * shared
        return self.edits.mask(place, layer, self.h, rows, keys), gates


def apart(first: Run, i: int, second: Run, j: int) -> list[tuple[float, float]]:
    """Cosine and distance between word i of one sentence and word j of another.

    In order: the bare word vectors, with their positions added, after each encoder layer, and
    normalised as the decoder reads them.
    """
    pairs = zip(first.encoded, second.encoded, strict=True)
    found = []
    for a, b in ((one[i].double(), other[j].double()) for one, other in pairs):
        found.append((float(torch.cosine_similarity(a, b, dim=0)), float((a - b).norm())))
    return found
