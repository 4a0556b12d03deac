"""Tokens as people write them: cut out of the text where the tokenizer tells where, else decoded.

`##ly`, `Ġthe`, `▁the` and bytes are how tokenizers write; what a reader typed is shown instead, the
raw form beside it. A character spread over several tokens (an emoji) is numbered: 🙂 1/3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

SPACES = {" ": "␣", "\n": "⏎", "\t": "⇥", "": "␣"}
MARKS = "▁Ġ"  # how tokenizers write a space


@dataclass(frozen=True)
class Token:
    """`text` as typed, `raw` as the tokenizer writes it, `word` the number of the typed word it
    belongs to (None for special tokens), `part` its number among the `parts` of one character."""

    text: str
    raw: str
    id: int
    special: bool = False
    unknown: bool = False
    word: int | None = None
    part: int = 1
    parts: int = 1

    @property
    def label(self) -> str:
        """What is written beside a row or column.

        >>> Token("🙂", "ðŁ", 1, part=2, parts=3).label
        '🙂 2/3'
        """
        return f"{self.text} {self.part}/{self.parts}" if self.parts > 1 else self.text


def read(tokenizer, text: str, ids, offsets=None, words=None) -> tuple[Token, ...]:
    """The tokens of ids (a list). `offsets` [(start, end)] in `text` and `words` [number or None]
    where the tokenizer tells them."""
    special, unknown = set(tokenizer.all_special_ids), tokenizer.unk_token_id
    raws = [str(raw) for raw in tokenizer.convert_ids_to_tokens(list(ids))]
    marked = [i in special and i != unknown for i in ids]
    spans = offsets if offsets is not None else [None] * len(raws)
    found = []
    for place, (raw, number, span) in enumerate(zip(raws, ids, spans, strict=True)):
        shown = raw
        if not marked[place] and span is not None:
            shown = _seen(text[span[0] : span[1]], raw)
        word = words[place] if words is not None and not marked[place] else None
        found.append(Token(shown, raw, int(number), marked[place], number == unknown, word))
    if offsets is None:
        return _decoded(tokenizer, found)
    return _numbered(found, [None if m else tuple(s) for m, s in zip(marked, spans, strict=True)])


def _seen(piece: str, raw: str) -> str:
    """A piece of text without the space before it; a visible sign where it is only space."""
    if raw and not raw.strip(MARKS):
        return "␣"
    bare = piece.strip()
    return bare or SPACES.get(piece, SPACES.get(piece[:1], piece))


def _numbered(found, spans) -> tuple[Token, ...]:
    """Neighbours cut from the very same characters are numbered."""
    made, place = [], 0
    while place < len(found):
        end = place + 1
        span = spans[place]
        while span and span[1] > span[0] and end < len(found) and spans[end] == span:
            end += 1
        same = found[place:end]
        made += [replace(t, part=i + 1, parts=len(same)) for i, t in enumerate(same)]
        place = end
    return tuple(made)


def _decoded(tokenizer, found) -> tuple[Token, ...]:
    """Each token decoded; those that are only a part of a character, together."""
    made, held = [], []
    for token in found:
        if token.special:
            made += [*held, token]
            held = []
            continue
        held.append(token)
        text = tokenizer.convert_tokens_to_string([t.raw for t in held])
        if "\ufffd" in text and len(held) < 8:
            continue
        shown = _seen(text, held[0].raw if len(held) == 1 else "")
        made += [replace(t, text=shown, part=i + 1, parts=len(held)) for i, t in enumerate(held)]
        held = []
    return (*made, *held)
