"""The network: an encoder–decoder of one or two layers a side, each matrix small enough to read.

Layers are pre-norm: rows are normalised, attention or the feed-forward adds to them. Attention
projections have no bias, so that `core.self_attention` and `core.cross_attention` make the very
same numbers from the same rows and matrices. Shapes: rows (B, S, H), heads (B, h, S, d_k).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import torch
from torch import nn

PLACES = ("encoder", "decoder", "cross")  # where attention happens
PAD, BEGIN, END = 0, 1, 2  # ids shared by both vocabularies


@dataclass(frozen=True)
class Sizes:
    """What decides the shapes of all matrices."""

    source_words: int
    target_words: int
    H: int = 32
    h: int = 4
    F: int = 64  # width of the feed-forward layer
    encoder: int = 2  # layers
    decoder: int = 1
    longest: int = 24  # positions on either side

    def layers(self, place: str) -> int:
        return self.encoder if place == "encoder" else self.decoder

    to_dict = asdict


class Attention(nn.Module):
    """Multi-head attention without biases. (B, S, H) asks (B, T, H)."""

    def __init__(self, H: int, h: int):
        super().__init__()
        self.h = h
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            matrix = nn.Parameter(torch.empty(H, H))
            nn.init.xavier_uniform_(matrix)
            self.register_parameter(name, matrix)

    def keys_values(self, X):
        """K and V of rows X, split into heads: (B, h, T, d_k) each."""
        return self._split(X @ self.W_K), self._split(X @ self.W_V)

    def _split(self, rows):
        return rows.unflatten(-1, (self.h, -1)).transpose(-3, -2)

    def forward(self, X, K, V, mask=None, gates=None):
        """Rows X (B, S, H) over keys and values. `mask`: True = may attend, broadcast to
        (B, h, S, T). `gates`: factor per head, (B or 1, h). Returns rows, weights and outputs."""
        scores = self._split(X @ self.W_Q) @ K.mT * K.shape[-1] ** -0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        weights = scores.softmax(-1)
        if mask is not None:  # a query that may see nothing is answered with nothing
            weights = weights.nan_to_num(0.0)
        output = weights @ V
        if gates is not None:
            output = output * gates[:, :, None, None]
        return output.transpose(-3, -2).flatten(-2) @ self.W_O, weights


class FeedForward(nn.Sequential):
    """H → F → H, each row for itself."""

    def __init__(self, H: int, F: int):
        super().__init__(nn.Linear(H, F), nn.ReLU(), nn.Linear(F, H))


class EncoderLayer(nn.Module):
    """Self-attention of the source, then feed-forward."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        H = sizes.H
        self.norm_self, self.self_attention = nn.LayerNorm(H), Attention(H, sizes.h)
        self.norm_feed, self.feed = nn.LayerNorm(H), FeedForward(H, sizes.F)


class DecoderLayer(EncoderLayer):
    """Causal self-attention of the target, cross-attention to the source, then feed-forward."""

    def __init__(self, sizes: Sizes):
        super().__init__(sizes)
        self.norm_cross = nn.LayerNorm(sizes.H)
        self.cross_attention = Attention(sizes.H, sizes.h)


class Network(nn.Module):
    """All weights. `encode` reads the source, `decode` continues the target by rows."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        self.sizes = sizes
        H = sizes.H
        self.source_words = nn.Embedding(sizes.source_words, H)
        self.target_words = nn.Embedding(sizes.target_words, H)
        self.source_places = nn.Embedding(sizes.longest, H)
        self.target_places = nn.Embedding(sizes.longest, H)
        for table in (self.source_words, self.target_words):
            nn.init.normal_(table.weight, std=0.5)
        for table in (self.source_places, self.target_places):
            nn.init.normal_(table.weight, std=0.3)
        self.encoder = nn.ModuleList(EncoderLayer(sizes) for _ in range(sizes.encoder))
        self.decoder = nn.ModuleList(DecoderLayer(sizes) for _ in range(sizes.decoder))
        self.norm_encoded, self.norm_decoded = nn.LayerNorm(H), nn.LayerNorm(H)
        self.readout = nn.Linear(H, sizes.target_words)

    def attention(self, place: str, layer: int) -> Attention:
        """The attention of a place: "encoder", "decoder" (both self) or "cross"."""
        stack = self.encoder if place == "encoder" else self.decoder
        return stack[layer].cross_attention if place == "cross" else stack[layer].self_attention

    def encode(self, ids, cuts=None, record=None):
        """Source ids (B, T), 0 where there is none → rows (B, T, H).

        `cuts(place, layer, rows, keys)`, with the range of rows that ask and the number of keys,
        gives (mask, gates) or (None, None), laid over what is masked anyhow.
        `record(place, layer, **tensors)` is told what went in and out of each attention.
        """
        seen = (ids != PAD)[:, None, None]
        x = self.source_words(ids) + self.source_places.weight[: ids.shape[1]]
        if record:
            record("embedded", 0, rows=x)
        for i, layer in enumerate(self.encoder):
            X = layer.norm_self(x)
            x = x + self._attend("encoder", i, X, layer.self_attention.keys_values(X), seen, cuts,
                                 record, X)  # fmt: skip
            x = x + layer.feed(layer.norm_feed(x))
            if record:
                record("encoded", i, rows=x)
        return self.norm_encoded(x)

    def decode(self, ids, encoded, seen, past=None, cuts=None, record=None):
        """Target ids (B, n) that stand at positions len(past) … → logits (B, n, words), cache.

        `encoded` (B, T, H); `seen` (B, T) is False at padding. The cache holds per layer the keys
        and values of all target rows so far, and those of the source, which are made once.
        """
        before = past[0]["K"].shape[-2] if past else 0
        n = ids.shape[1]
        y = self.target_words(ids) + self.target_places.weight[before : before + n]
        below = torch.ones(n, before + n, dtype=torch.bool).tril(before)
        cache = []
        for i, layer in enumerate(self.decoder):
            Y = layer.norm_self(y)
            own, cross = layer.self_attention, layer.cross_attention
            K, V = own.keys_values(Y)
            if past:
                K = torch.cat([past[i]["K"], K], -2)
                V = torch.cat([past[i]["V"], V], -2)
                source = past[i]["source"]
            else:
                source = cross.keys_values(encoded)
            y = y + self._attend("decoder", i, Y, (K, V), below, cuts, record, Y, before)
            Y = layer.norm_cross(y)
            y = y + self._attend("cross", i, Y, source, seen[:, None, None], cuts, record, encoded,
                                 before)  # fmt: skip
            y = y + layer.feed(layer.norm_feed(y))
            cache.append({"K": K, "V": V, "source": source})
        return self.readout(self.norm_decoded(y)), cache

    def _attend(self, place, layer, X, keys_values, seen, cuts, record, given, first=0):
        rows, keys = range(first, first + X.shape[1]), keys_values[0].shape[-2]
        mask, gates = cuts(place, layer, rows, keys) if cuts else (None, None)
        seen = seen if mask is None else seen & mask
        rows, weights = self.attention(place, layer)(X, *keys_values, seen, gates)
        if record:
            record(place, layer, X=X, given=given, rows=rows, weights=weights)
        return rows
