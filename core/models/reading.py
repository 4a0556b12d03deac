"""A model reads a text: its tokens, every attention call, what each head does, vectors by layer."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace

import numpy as np
import torch
import torch.nn.functional as F

from core.errors import InputError, require
from core.models import facts as measures
from core.models import tokens as written
from core.models.capture import FORWARD, Call, watch
from core.models.facts import Facts
from core.models.loading import Model
from core.models.tokens import Token

THUMB = 24  # cells along the side of a head in the gallery
UNLIKE = 1e-4  # weights that differ by more from the model's own are not shown
ANSWER = 32  # tokens that a model with a decoder is let write
KEPT_BYTES, KEPT_LEAST = 64 << 20, 4  # of readings: a page shows two


@dataclass(frozen=True, eq=False)
class Reading:
    """What came of one text. `calls` in the order of the model; `facts[c][i]` of head i of call c.

    `thumbs[c]`: (h, ≤ THUMB, ≤ THUMB) float32, the largest weight per block. `embedded` (S, H):
    the word vectors before anything is added. `hidden`: (S, H) after the embedding and after each
    layer, of the text itself (an encoder's side). `deviation`: the largest difference between the
    weights shown and the model's own.
    """

    model: str
    text: str
    tokens: tuple[Token, ...]
    targets: tuple[Token, ...]
    calls: tuple[Call, ...]
    facts: tuple[tuple[Facts, ...], ...] = field(repr=False)
    thumbs: tuple[np.ndarray, ...] = field(repr=False)
    embedded: torch.Tensor = field(repr=False)
    hidden: tuple[torch.Tensor, ...] = field(repr=False)
    deviation: float

    def sides(self, call: int) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
        """Tokens of the queries and of the keys of a call."""
        kind = self.calls[call].kind
        asking = self.targets if kind in ("decoder", "cross") else self.tokens
        return asking, self.targets if kind == "decoder" else self.tokens

    def weights(self, call: int) -> torch.Tensor:
        """(h, S, T) of a call, computed by the engine."""
        return self.calls[call].trace()["weights"][0]

    @property
    def nbytes(self) -> int:
        """What keeping this costs."""
        held = [self.embedded, *self.hidden]
        for call in self.calls:
            held += [call.q, call.k, call.v]
            held += [call.inputs.asking, call.inputs.asked] if call.inputs else []
            held += [mask for mask in (call.seen, call.bias) if mask is not None]
        storages = {x.untyped_storage().data_ptr(): x.untyped_storage().nbytes() for x in held}
        return sum(storages.values())


def read(
    model: Model, text: str, target: str = "", *, beside: str = "", cut: bool = False
) -> Reading:
    """Let a model read a text; kept, and shared by all who ask for the same.

    `target`: for models with a decoder, what it is to have written; without it, what it writes
    itself, ANSWER tokens at most. `beside`: a second text, read together with the first by a model
    that takes `couples`. `cut`: take the first tokens of a text that is too long. Raises
    InputError.
    """
    key = (id(model), text, target, beside, cut)
    kept = _shelf.get(key)
    if kept is None or kept[0] is not model:
        with FORWARD:
            kept = _shelf.get(key)
            if kept is None or kept[0] is not model:
                kept = (model, _read(model, text, target, beside, cut))
                _shelf.put(key, kept, kept[1].nbytes)
    return kept[1]


class _Shelf:
    """The latest things: `least` of them, and more while they take at most `most` bytes."""

    def __init__(self, most: int, least: int):
        self.most, self.least, self.held = most, least, OrderedDict()
        self.lock = threading.Lock()

    def get(self, key):
        with self.lock:
            if key not in self.held:
                return None
            self.held.move_to_end(key)
            return self.held[key][0]

    def put(self, key, thing, size: int) -> None:
        with self.lock:
            self.held[key] = (thing, size)
            self.held.move_to_end(key)
            while (
                len(self.held) > self.least
                and sum(n for _thing, n in self.held.values()) > self.most
            ):
                self.held.popitem(last=False)


_shelf = _Shelf(KEPT_BYTES, KEPT_LEAST)


def _read(model: Model, text: str, target: str, beside: str, cut: bool) -> Reading:
    targets = ()
    try:
        tokens, entered = _tokens(model, text, cut, beside=beside)
        ids = entered["input_ids"]
        with torch.no_grad():
            if model.pairs:
                targets, answer = _targets(model, entered, target, cut)
                entered["decoder_input_ids"] = answer
            with watch(model.network) as calls:
                made = model.network(**entered, output_hidden_states=True, use_cache=False)
            embedded = model.network.get_input_embeddings()(ids)[0].clone()
    except InputError:
        raise
    except Exception as problem:  # a model can refuse a text in every way there is
        reason = type(problem).__name__
        raise InputError("model-run", name=model.name, reason=reason) from problem
    require(calls, "model-closed", name=model.name)
    hidden = made.get("encoder_hidden_states") or made.get("hidden_states") or ()
    hidden = tuple(state[0] for state in hidden)
    return _measured(model, text, tokens, targets, calls, embedded, hidden)


def _measured(model, text, tokens, targets, calls, embedded, hidden) -> Reading:
    """Facts and pictures of every head, and the check against the model's own weights."""
    stacks, found, thumbs, deviation = [], [], [], 0.0
    places = {"source": _special(tokens), "target": _special(targets)}
    bare = []
    for call in calls:
        weights = call.trace()["weights"]
        if call.own is not None:
            by = float((weights - call.own).abs().max())
            place = f"{call.kind} {call.layer + 1}"
            require(by <= UNLIKE, "model-unlike", name=model.name, place=place, by=f"{by:.1g}")
            deviation = max(deviation, by)
        bare.append(replace(call, own=None))
        weights = weights[0]
        special = places["target" if call.kind == "decoder" else "source"]
        crossed = call.kind == "cross"
        found.append(measures.measure(weights, call.visible(), special=special, cross=crossed))
        size = [min(n, THUMB) for n in weights.shape[1:]]
        thumbs.append(F.adaptive_max_pool2d(weights.float(), size).numpy())
        rows = torch.linspace(0, weights.shape[1] - 1, min(weights.shape[1], measures.ROWS))
        stacks.append(weights[:, rows.round().long().unique()].clone())
    for (c, i), (twin, apart) in measures.twins(stacks, [call.kind for call in calls]).items():
        found[c][i] = replace(found[c][i], twin=twin, apart=apart)
    return Reading(
        model=model.name,
        text=text,
        tokens=tokens,
        targets=targets,
        calls=tuple(bare),
        facts=tuple(map(tuple, found)),
        thumbs=tuple(thumbs),
        embedded=embedded,
        hidden=hidden,
        deviation=deviation,
    )


def _special(tokens) -> list[int]:
    return [place for place, token in enumerate(tokens) if token.special]


# --- tokens -----------------------------------------------------------------------------------


def count(model: Model, text: str) -> int:
    """Tokens of a text, special ones included."""
    return len(model.tokenizer(text)["input_ids"])


def _tokens(model: Model, text: str, cut: bool, *, side: str = "text", beside: str = ""):
    """The tokens of a text, or of two, and what a model is given of them: ids (1, S), …"""
    tokenizer = model.tokenizer
    options = {"truncation": True, "max_length": model.limit} if cut else {}
    fast = bool(getattr(tokenizer, "is_fast", False))
    given = {side: text} | ({"text_pair": beside} if beside else {})
    entered = tokenizer(**given, return_offsets_mapping=fast, verbose=False, **options)
    ids = entered["input_ids"]
    require(ids and (text.strip()), "model-text")
    facts = {"name": model.name, "got": len(ids), "most": model.limit}
    require(len(ids) <= model.limit, "model-long", **facts)
    offsets, words = _places(entered, text) if fast else (None, None)
    made = {"input_ids": torch.tensor([ids])}
    made["attention_mask"] = torch.ones_like(made["input_ids"])
    if beside and "token_type_ids" in entered:
        made["token_type_ids"] = torch.tensor([entered["token_type_ids"]])
    return written.read(tokenizer, text + beside, ids, offsets, words), made


def _places(entered, text: str):
    """Where each token stands in both texts put together, and the number of its word there."""
    second = [part == 1 for part in entered.sequence_ids(0)]
    offsets = [
        (start + len(text), end + len(text)) if later else (start, end)
        for (start, end), later in zip(entered["offset_mapping"], second, strict=True)
    ]
    words = entered.word_ids(0)
    first = [word for word, later in zip(words, second, strict=True) if not later]
    more = 1 + max((word for word in first if word is not None), default=-1)
    words = [
        word if word is None or not later else word + more
        for word, later in zip(words, second, strict=True)
    ]
    return offsets, words


def _targets(model: Model, entered, target: str, cut: bool):
    """What the decoder is given: a start token, then the target, typed or written by the model."""
    network, tokenizer = model.network, model.tokenizer
    told = (
        getattr(network.generation_config, "decoder_start_token_id", None),
        getattr(network.config, "decoder_start_token_id", None),
        tokenizer.bos_token_id,
        tokenizer.pad_token_id,
    )
    start = next((number for number in told if number is not None), 0)
    if target.strip():
        tokens, _entered = _tokens(model, target, cut, side="text_target")
        first = written.read(tokenizer, "", [start])
        kept = tokens[: model.limit - 1]
        if kept and kept[-1].special:
            kept = kept[:-1]
        given = [start, *(token.id for token in kept)]
        return (replace(first[0], special=True), *kept), torch.tensor([given])
    written_ids = network.generate(
        **entered,
        decoder_start_token_id=start,
        max_new_tokens=min(ANSWER, model.limit - 1),
        do_sample=False,
        num_beams=1,
    )[0].tolist()
    ids = written_ids[:-1] if len(written_ids) > 1 else written_ids
    tokens = written.read(tokenizer, "", ids)
    return (replace(tokens[0], special=True), *tokens[1:]), torch.tensor([ids])
