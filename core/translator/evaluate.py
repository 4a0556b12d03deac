"""How good a network is: exact translations, and heads that look where the word comes from."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from core.translator import corpus
from core.translator.grammar import Pair
from core.translator.model import BEGIN, END, PAD, PLACES, Network

BATCH = 500


def greedy(network: Network, sources: torch.Tensor, cuts=None) -> list[list[int]]:
    """The most probable word at each step, for source ids (B, T), until <end>."""
    seen = sources != PAD
    with torch.no_grad():
        encoded, past = network.encode(sources, cuts), None
        ids = torch.full((len(sources), 1), BEGIN)
        made = []
        for _ in range(network.sizes.longest):
            logits, past = network.decode(ids, encoded, seen, past, cuts)
            ids = logits[:, -1:].argmax(-1)
            made.append(ids)
            if all(END in row for row in torch.cat(made, 1).tolist()):
                break
    rows = torch.cat(made, 1).tolist()
    return [row[: row.index(END)] if END in row else row for row in rows]


def exact(network: Network, pairs: Sequence[Pair], source_words, target_words, cuts=None) -> float:
    """Share of pairs whose translation is the grammar's, word for word."""
    ids = {word: i for i, word in enumerate(target_words)}
    hits = 0
    for start in range(0, len(pairs), BATCH):
        part = pairs[start : start + BATCH]
        sources = corpus.numbers([pair.en for pair in part], source_words, marks=False)
        for pair, row in zip(part, greedy(network, sources, cuts), strict=True):
            hits += row == [ids[word] for word in pair.zh]
    return hits / len(pairs)


def without(network: Network, pairs: Sequence[Pair], source_words, target_words) -> dict:
    """`exact` with each head silenced in turn: place → (layers, h)."""
    h = network.sizes.h

    def one(place, layer, head):
        def cuts(where, at, _rows, _keys):
            gates = torch.ones(1, h)
            gates[0, head] = float((where, at) != (place, layer))
            return None, gates

        return exact(network, pairs, source_words, target_words, cuts)

    return {
        place: [
            [one(place, layer, head) for head in range(h)]
            for layer in range(network.sizes.layers(place))
        ]
        for place in PLACES
    }


def aligned(network: Network, pairs: Sequence[Pair], source_words, target_words, *, one=False):
    """For each layer and head (layers, h): how often its strongest cross-attention is a true word.

    Counted over the target words that render some source word. The row that predicts word t is the
    one that holds word t − 1 (<begin> for the first), with the grammar's translation before it.
    Any of the words that the grammar links counts; with `one`, only words with a single link do.
    """
    sizes = network.sizes
    hits, total = torch.zeros(sizes.decoder, sizes.h), 0
    for start in range(0, len(pairs), BATCH):
        part = pairs[start : start + BATCH]
        weights = cross_weights(network, part, source_words, target_words)  # (layers, B, h, S, T)
        strongest = weights.argmax(-1)
        true = torch.zeros(weights.shape[1], weights.shape[3], weights.shape[4], dtype=torch.bool)
        for b, pair in enumerate(part):
            for t, links in enumerate(pair.links):
                if not one or len(links) == 1:
                    true[b, t, list(links)] = True
        counted = true.any(-1)  # (B, S)
        total += int(counted.sum())
        for layer in range(sizes.decoder):
            for head in range(sizes.h):
                found = true.gather(-1, strongest[layer, :, head, :, None])[..., 0]
                hits[layer, head] += (found & counted).sum()
    return hits / total


def cross_weights(network, pairs, source_words, target_words) -> torch.Tensor:
    """(layers, B, h, S, T): who looks where while the grammar's own translation is read in."""
    kept = {}

    def record(place, layer, weights=None, **_):
        if place == "cross":
            kept[layer] = weights

    sources = corpus.numbers([pair.en for pair in pairs], source_words, marks=False)
    targets = corpus.numbers([pair.zh for pair in pairs], target_words, marks=True)
    with torch.no_grad():
        network.decode(targets[:, :-1], network.encode(sources), sources != PAD, record=record)
    return torch.stack([kept[layer] for layer in range(network.sizes.decoder)])
