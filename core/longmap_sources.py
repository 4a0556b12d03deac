"""Q and K whose map has a pattern worth looking for, at any length: made, not drawn.

Each source is a real pair of matrices; the pattern comes out of softmax(QKᵀ/√d) in the engine.
Known weights are part of the recipe, so that a reader (and a test) can check them:

>>> source = make("needle", 128, seed=1)
>>> i, j = source.landmark
>>> scores = source.q @ source.k.T / 64**0.5
>>> round(float(scores.softmax(-1)[i, j]), 4)
0.9
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from core.errors import require

LENGTHS = tuple(2**n for n in range(7, 18))  # 128 … 131,072
NEEDLE_WEIGHT = 0.9
LOCAL_REACH = 64  # tokens, the width of the local window's bell
SLOPE = 1 / 64  # ALiBi: score lost per token of distance
REPEATS = 3  # times the sequence of the induction source is said
_CODE = 56  # columns that hold a token's code; the other 8 lead to the first token


@dataclass(frozen=True, eq=False)
class Source:
    """Q (S, d) and K (T, d), or (h, S, d) and (g, T, d); float32.

    `options` are the engine's options that the pattern is meant for (causal …). `landmark` is a
    cell (query, key) to look at first, `tokens(i)` the label of a position where there are words.
    """

    name: str
    q: torch.Tensor
    k: torch.Tensor
    options: Mapping = field(default_factory=dict)
    landmark: tuple[int, int] | None = None
    tokens: Callable[[int], str] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """(S, T): how many queries and keys."""
        return self.q.shape[-2], self.k.shape[-2]

    @property
    def heads(self) -> int:
        """How many query heads; 1 for plain matrices."""
        return self.q.shape[0] if self.q.dim() == 3 else 1


def make(name: str, S: int, d: int = 64, seed: int = 0) -> Source:
    """The source `name` at length S. Same arguments, same numbers.

    Raises InputError for an unknown name or an S below 8.

    >>> make("random", 16).q.shape
    torch.Size([16, 64])
    """
    require(name in SOURCES, "unknown-choice", name="source", got=name, known=", ".join(SOURCES))
    require(S >= 8, "size-least", name="S", got=S, least=8)
    require(d >= 16 and d % 2 == 0, "size-least", name="d", got=d, least=16)
    return SOURCES[name](S, d, torch.Generator().manual_seed(seed))


def captured(call, words: Sequence[str]) -> Source:
    """All heads of an attention call of a model (core.models.Call), its first sample.

    `words` label the positions. Raises InputError for a call whose mask or bias is not plain: the
    map knows "everything" and causal.
    """
    seen = call.visible(0)
    S, T = seen.shape[-2:]
    causal = bool((seen == torch.ones(S, T, dtype=torch.bool).tril()).all())
    require(call.bias is None and (causal or bool(seen.all())), "map-mask", name=call.name)
    given = {"causal": causal, "scale": call.scale, "softcap": call.softcap}
    q, k = call.q[0].float().contiguous(), call.k[0].float().contiguous()
    return Source("model", q, k, given, tokens=lambda i: words[i])


def options(name: str) -> dict:
    """The engine's options that the source `name` is meant for, without making it.

    >>> options("alibi")
    {'causal': True}
    """
    return {"causal": True} if name in ("induction", "sink", "alibi") else {}


def _random(S, d, generator) -> Source:
    """Independent normal entries: scores of variance 1, no pattern at all."""
    return Source("random", _normal(S, d, generator), _normal(S, d, generator))


def _needle(S, d, generator) -> Source:
    """Random rows, but the last query asks for one key only, which then weighs NEEDLE_WEIGHT.

    All else is orthogonal to the needle's direction u, so its row has the scores c, 0, 0, … with
    e^c = 9·(S − 1).
    """
    q, k = _normal(S, d, generator), _normal(S, d, generator)
    u = _normal(1, d, generator)[0]
    u /= u.norm()
    q -= (q @ u)[:, None] * u
    k -= (k @ u)[:, None] * u
    j = int(S * (0.2 + 0.6 * torch.rand((), generator=generator).item()))
    score = math.log(NEEDLE_WEIGHT / (1 - NEEDLE_WEIGHT) * (S - 1))
    each = math.sqrt(score * math.sqrt(d))
    q[-1], k[j] = each * u, each * u
    return Source("needle", q, k, options("needle"), (S - 1, j))


def _induction(S, d, generator) -> Source:
    """One sequence of different words said REPEATS times; a query looks for "what came after me".

    The query carries its own token's code, a key the code of the token before it: so they meet at
    the token after an earlier occurrence. Rows with no earlier occurrence go to the first token.
    """
    period = -(-S // REPEATS)
    width = min(_CODE, d - 8)
    codes = torch.randint(0, 2, (period, width), generator=generator) * 2.0 - 1
    token = torch.arange(S) % period
    q, k = torch.zeros(S, d), torch.zeros(S, d)
    gain = math.sqrt(28 / width * math.sqrt(d))  # a match scores 28
    q[:, :width] = gain * codes[token]
    k[1:, :width] = gain * codes[token[:-1]]
    q[:, width:] = 1.0
    k[0, width:] = 23 * math.sqrt(d) / (d - width)  # the first token scores 23 with everyone
    first = 1 + period // 3
    landmark = (period + first, first + 1)
    order = torch.randperm(_WORDS, generator=generator).tolist()
    return Source(
        "induction", q, k, options("induction"), landmark, lambda i: _word(i % period, order)
    )


def _window(S, d, generator) -> Source:
    """Positions as waves: the score of a pair falls with its distance like a bell.

    s(Δ) = 24 · mean of cos(ω·Δ), which for normal ω is about 24·exp(−Δ²/2·LOCAL_REACH²).
    """
    waves = torch.randn(d // 2, generator=generator, dtype=torch.float64) / LOCAL_REACH
    angle = torch.arange(S, dtype=torch.float64)[:, None] * waves
    code = torch.cat([angle.cos(), angle.sin()], -1).float()
    code *= math.sqrt(24 * math.sqrt(d) / (d // 2))
    return Source("window", code, code.clone(), options("window"), (S // 2, S // 2))


def _sink(S, d, generator) -> Source:
    """Weak random scores, and one key, the first, that all queries agree on: e^score = 3·S."""
    q, k = _normal(S, d, generator), 0.5 * _normal(S, d, generator)
    q[:, 0], k[:, 0] = 1.0, 0.0
    k[0] = 0.0
    k[0, 0] = math.log(3 * S) * math.sqrt(d)
    return Source("sink", q, k, options("sink"), (S - 1, 0))


def _alibi(S, d, generator) -> Source:
    """Distance alone: the score is −SLOPE·(i − j), so each token further back weighs 1.6 % less."""
    place = torch.arange(S, dtype=torch.float32)
    q, k = torch.zeros(S, d), torch.zeros(S, d)
    root = math.sqrt(d)
    q[:, 0], k[:, 0] = root, SLOPE * place
    q[:, 1], k[:, 1] = -SLOPE * root * place, 1.0
    return Source("alibi", q, k, options("alibi"), (S - 1, S - 1))


SOURCES: dict[str, Callable[..., Source]] = {
    "induction": _induction,
    "needle": _needle,
    "window": _window,
    "sink": _sink,
    "alibi": _alibi,
    "random": _random,
}

_ONSETS, _VOWELS = "bdfgklmnprstvz", "aeiou"
_SYLLABLES = [onset + vowel for onset in _ONSETS for vowel in _VOWELS]
_WORDS = len(_SYLLABLES) ** 2


def _word(token: int, order: list[int]) -> str:
    """A made-up word of two syllables or more for each token, every one different.

    >>> _word(3, [0, 71, 142, 213])
    'bobo'
    """
    more, at = divmod(token, len(order))
    first, second = divmod(order[at], len(_SYLLABLES))
    return _SYLLABLES[first] + _SYLLABLES[second] + (_SYLLABLES[more] if more else "")


def _normal(rows: int, columns: int, generator) -> torch.Tensor:
    return torch.randn(rows, columns, generator=generator)
