"""The trained translator at work: token by token, watched, and changed by hand.

>>> run = load().run("the cat sat on the mat")
>>> run.target, run.steps[0].cache_bytes < run.steps[-1].cache_bytes
(('猫', '坐', '在', '垫子', '上'), True)
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch
from safetensors.torch import load_file

import core
from core import Trace
from core.errors import require
from core.translator.model import BEGIN, END, PLACES, Network, Sizes

FOLDER = Path(__file__).parents[2] / "assets/models"
SHORT = {"won't": "will not", "can't": "can not"}
LISTED = 5  # words whose probability a step lists


@dataclass(frozen=True)
class Edits:
    """What is taken away from the network before it translates.

    `cuts`: links (place, layer, head, query, key) that may not be used; head −1 means all heads.
    `silent`: heads (place, layer, head) whose output counts as 0.
    """

    cuts: tuple[tuple[str, int, int, int, int], ...] = ()
    silent: tuple[tuple[str, int, int], ...] = ()

    def __bool__(self):
        return bool(self.cuts or self.silent)

    def mask(self, place: str, layer: int, h: int, rows: range, keys: int):
        """Who may attend, (1, h, rows, keys), or None where nothing is cut."""
        here = [cut[2:] for cut in self.cuts if cut[:2] == (place, layer)]
        here = [(head, i - rows.start, j) for head, i, j in here if i in rows and j < keys]
        if not here:
            return None
        mask = torch.ones(1, h, len(rows), keys, dtype=torch.bool)
        for head, i, j in here:
            mask[0, slice(None) if head < 0 else head, i, j] = False
        return mask

    def gates(self, place: str, layer: int, h: int):
        """Factor per head, (1, h), or None where no head is silenced."""
        here = [head for where, at, head in self.silent if (where, at) == (place, layer)]
        if not here:
            return None
        gates = torch.ones(1, h)
        gates[0, here] = 0
        return gates


@dataclass(frozen=True)
class Step:
    """One step: the row read in, the word chosen, the most probable words, and the cache after it.

    `cache`: shape (h, n, d_k) of the keys, and of the values, of all decoder rows of a layer.
    `cache_bytes`: of keys and values of all layers, without those of the source.
    """

    read: str
    word: str
    probabilities: tuple[tuple[str, float], ...]
    cache: tuple[int, ...]
    cache_bytes: int


@dataclass(frozen=True, eq=False)
class Run:
    """A translation and every row that went into an attention on the way.

    `rows[place, layer]`: what asked, (S, H), normalised; `given[place, layer]`: what answered;
    `weights[place, layer]` (h, S, T); `out[place, layer]`: what attention added, (S, H);
    `encoded`: the source rows after each layer, first the bare word, then with its position.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    steps: tuple[Step, ...]
    edits: Edits
    rows: Mapping
    given: Mapping
    weights: Mapping
    out: Mapping
    encoded: tuple[torch.Tensor, ...]
    source_bytes: int

    @property
    def read(self) -> tuple[str, ...]:
        """The words that the decoder's rows hold: <begin>, then the translation."""
        return tuple(step.read for step in self.steps)

    @property
    def written(self) -> tuple[str, ...]:
        """The words that the decoder's rows predict: the translation, then <end>."""
        return tuple(step.word for step in self.steps)


def words(text: str) -> tuple[str, ...]:
    """The words of a sentence as the network knows them.

    >>> words("The cat's mouse doesn't sleep.")
    ('the', 'cat', "'s", 'mouse', 'does', 'not', 'sleep')
    """
    require(isinstance(text, str), "translator-text", got=repr(text)[:40])
    text = text.lower().replace("’", "'")
    for short, long in SHORT.items():
        text = text.replace(short, long)
    text = text.replace("n't", " not").replace("'m ", " am ")
    return tuple(re.findall(r"'s|[^\W_]+", text))


class Translator:
    """The network with its two vocabularies."""

    def __init__(self, network: Network, about: dict):
        self.network = network.eval().requires_grad_(False)
        self.about = about
        self.sizes = network.sizes
        self.source_words = tuple(about["source_words"])
        self.target_words = tuple(about["target_words"])
        self._ids = {word: i for i, word in enumerate(self.source_words)}
        self._target_ids = {word: i for i, word in enumerate(self.target_words)}

    # --- sentences ---------------------------------------------------------------------------

    @property
    def known(self) -> tuple[str, ...]:
        """The English words it knows, in alphabetical order."""
        return self.source_words[3:]

    def unknown(self, text: str) -> list[tuple[str, list[str]]]:
        """Each word outside the vocabulary, with up to three known ones most like it.

        >>> load().unknown("the catt sleeps")
        [('catt', ['cat', 'cats', 'catch'])]
        """
        found = dict.fromkeys(word for word in words(text) if word not in self.known)
        return [(word, difflib.get_close_matches(word, self.known, 3, 0.3)) for word in found]

    def read(self, text: str) -> tuple[str, ...]:
        """The words of a sentence; InputError if it is empty, too long or has unknown ones."""
        found, most = words(text), self.sizes.longest
        require(found, "translator-empty")
        require(len(found) <= most, "translator-long", got=len(found), most=most)
        for word, near in self.unknown(text):
            require(False, "translator-unknown", got=word[:40], known=len(self.known),
                    near=", ".join(near) or "–")  # fmt: skip
        return found

    def translate(self, text: str) -> list[str]:
        """The Chinese words of an English sentence.

        >>> load().translate("the cat sits on the mat")
        ['猫', '坐', '在', '垫子', '上']
        """
        return list(self.run(text).target)

    def source_ids(self, text: str) -> torch.Tensor:
        """Ids (1, T) of a sentence."""
        return torch.tensor([[self._ids[word] for word in self.read(text)]])

    def target_ids(self, target: Sequence[str]) -> list[int]:
        """Ids of Chinese words."""
        return [self._target_ids[word] for word in target]

    # --- running -----------------------------------------------------------------------------

    @torch.no_grad()
    def run(self, text: str, edits: Edits = Edits()) -> Run:
        """Translate greedily, one token at a time, keys and values of earlier rows kept."""
        log, ids = _Log(edits, self.sizes.h), self.source_ids(text)
        source = tuple(self.source_words[i] for i in ids[0].tolist())
        encoded, seen = self.network.encode(ids, log.cuts, log.record), ids > 0
        past, last, steps = None, BEGIN, []
        while last != END and len(steps) < self.sizes.longest:
            read = self.target_words[last]
            logits, past = self.network.decode(
                torch.tensor([[last]]), encoded, seen, past, log.cuts, log.record
            )
            chances = logits[0, -1].softmax(-1)
            last = int(chances.argmax())
            steps.append(self._step(read, last, chances, past))
        target = tuple(step.word for step in steps if step.word != self.target_words[END])
        kept = {name: log.gathered(name) for name in ("X", "given", "weights", "rows")}
        bare = self.network.source_words(ids)[0]
        states = (bare, *(rows[0] for rows in log.states), encoded[0])
        return Run(
            source, target, tuple(steps), edits, kept["X"], kept["given"], kept["weights"],
            kept["rows"], states, sum(_bytes(*layer["source"]) for layer in past),
        )  # fmt: skip

    def _step(self, read, chosen, chances, cache) -> Step:
        top = chances.topk(LISTED)
        listed = zip(top.indices.tolist(), top.values.tolist(), strict=True)
        return Step(
            read,
            self.target_words[chosen],
            tuple((self.target_words[i], p) for i, p in listed),
            tuple(cache[0]["K"].shape[1:]),
            sum(_bytes(layer["K"], layer["V"]) for layer in cache),
        )

    @torch.no_grad()
    def chances(self, text: str, target: Sequence[str], edits: Edits = Edits()):
        """Probability of each word of a given translation (and of <end>), the ones before given.

        >>> min(load().chances("the cat sits", ["猫", "坐"])) > 0.9
        True
        """
        log, ids = _Log(edits, self.sizes.h), self.source_ids(text)
        wanted = [*self.target_ids(target), END]
        encoded = self.network.encode(ids, log.cuts)
        before = torch.tensor([[BEGIN, *wanted[:-1]]])
        logits, _ = self.network.decode(before, encoded, ids > 0, cuts=log.cuts)
        return logits[0].softmax(-1).gather(-1, torch.tensor(wanted)[:, None])[:, 0].tolist()

    # --- the same in the microscope ----------------------------------------------------------

    def trace(self, run: Run, place: str, layer: int, step: int | None = None) -> Trace:
        """One attention of a run, computed anew with every intermediate, from rows and matrices.

        `place`: "encoder", "decoder" or "cross". `step` (decoder and cross only): that row alone,
        in the decoder over keys and values kept from the rows before it; else all rows at once.
        A silenced head has rows of 0 in W_O; a cut link is masked.
        """
        require(place in PLACES, "unknown-choice", name="place", got=repr(place),
                known=", ".join(PLACES))  # fmt: skip
        net, h = self.network.attention(place, layer), self.sizes.h
        X, given = run.rows[place, layer], run.given[place, layer]
        W_O = net.W_O.clone()
        gates = run.edits.gates(place, layer, h)
        if gates is not None:
            W_O *= gates[0].repeat_interleave(W_O.shape[0] // h)[:, None]
        matrices = (net.W_Q.detach(), net.W_K.detach(), net.W_V.detach(), W_O)
        rows = range(len(X)) if step is None else range(step, step + 1)
        keys = rows.stop if place == "decoder" else len(given)
        limits = {"heads": h, "mask": run.edits.mask(place, layer, h, rows, keys)}
        asking = X[rows.start : rows.stop]
        if place == "cross":
            return core.cross_attention(asking, given, *matrices, **limits)
        if place == "encoder":
            return core.self_attention(X, *matrices, **limits)
        if rows.start:
            K, V = net.keys_values(X[: rows.start])
            limits |= {"past_key": K, "past_value": V}
        return core.self_attention(asking, *matrices, causal=True, **limits)


class _Log:
    """What a run is told to leave out, and what it reports."""

    def __init__(self, edits: Edits, h: int):
        self.edits, self.h, self.heard, self.states = edits, h, {}, []

    def cuts(self, place, layer, rows, keys):
        mask = self.edits.mask(place, layer, self.h, rows, keys)
        return mask, self.edits.gates(place, layer, self.h)

    def record(self, place, layer, **tensors):
        if place in PLACES:
            self.heard.setdefault((place, layer), []).append(tensors)
        else:
            self.states.append(tensors["rows"])

    def gathered(self, name: str) -> dict:
        """The tensors of one name, all rows of a run together."""
        return {key: _joined(name, key[0], [one[name][0] for one in heard])
                for key, heard in self.heard.items()}  # fmt: skip


def _joined(name, place, parts):
    if name == "given" and place != "decoder":  # the same source rows at every step
        return parts[0]
    if name != "weights":
        return torch.cat(parts)
    width = parts[-1].shape[-1]  # rows of a causal map grow by one key a step
    padded = [torch.nn.functional.pad(part, (0, width - part.shape[-1])) for part in parts]
    return torch.cat(padded, -2)


def _bytes(*tensors) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


@lru_cache(maxsize=1)
def load(folder: str | Path = FOLDER) -> Translator:
    """The translator that ships with the product, or one that `train` wrote to another folder.

    >>> load().sizes.H, load().sizes.h
    (32, 4)
    """
    about = json.loads((Path(folder) / "translator.json").read_text("utf-8"))
    network = Network(Sizes(**about["sizes"]))
    network.load_state_dict(load_file(Path(folder) / "translator.safetensors"))
    return Translator(network, about)


def loss_curve(folder: str | Path = FOLDER) -> tuple[list[int], list[float]]:
    """Steps and losses of the training, as the training program wrote them.

    >>> steps, losses = loss_curve()
    >>> losses[-1] < losses[0] / 10
    True
    """
    lines = (Path(folder) / "translator_loss.csv").read_text("utf-8").splitlines()[1:]
    pairs = [line.split(",") for line in lines]
    return [int(step) for step, _ in pairs], [float(loss) for _, loss in pairs]
