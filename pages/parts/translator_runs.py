"""Translations and their traces, computed once and shared by all visitors, and what parts are
called in the reader's language."""

from functools import lru_cache

import numpy as np

from core import Trace
from core.manifest import manifest
from core.translator import Edits, Run, load, studies
from parts.text import N_, _

PLACES = {
    "encoder": N_("Encoder self-attention"),
    "decoder": N_("Decoder self-attention, causal"),
    "cross": N_("Cross-attention"),
}
NONE = Edits()
LONGEST = 200  # letters of a sentence

run = lru_cache(maxsize=256)(lambda text, edits=NONE: load().run(text, edits))
chances = lru_cache(maxsize=256)(
    lambda text, target, edits=NONE: tuple(load().chances(text, target, edits))
)
rests_on = lru_cache(maxsize=256)(
    lambda text, target, t, edits=NONE: tuple(studies.rests_on(load(), text, target, t, edits))
)


@lru_cache(maxsize=128)
def trace(text: str, edits: Edits, place: str, layer: int, step: int | None) -> Trace:
    """One attention of a translation with every intermediate."""
    return load().trace(run(text, edits), place, layer, step)


@lru_cache(maxsize=64)
def _described(text, edits, place, layer, step, pick):
    made = run(text, edits)
    named = {"labels": labels(made, place, step)}
    return manifest(trace(text, edits, place, layer, step), dict(pick), **named)


def described(text, edits, place, layer, step, pick) -> tuple[dict, np.ndarray]:
    """The manifest and numbers for the microscope, dims named in the reader's language."""
    plain, values = _described(text, edits, place, layer, step, tuple(pick))
    dims = {n: facts | {"name": _(facts["name"])} for n, facts in plain["dims"].items()}
    return plain | {"dims": dims}, values


def labels(made: Run, place: str, step: int | None) -> dict[str, list[str]]:
    """The words that rows and columns stand for."""
    if place == "encoder":
        return {"S": list(made.source)}
    rows = list(made.read) if step is None else [made.read[step]]
    if place == "cross":
        return {"S": rows, "T": list(made.source)}
    if step is None:
        return {"S": rows}
    past = list(made.read[:step])
    return {"S": rows, "N": rows, "P": past, "T": [*past, *rows]}


def sides(made: Run, place: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Who asks and who answers in a place: words of the rows, words of the keys."""
    if place == "encoder":
        return made.source, made.source
    return made.read, made.source if place == "cross" else made.read


def head_name(place: str, layer: int, head: int) -> str:
    """ "encoder 1 · head 4": numbers from 1."""
    names = {"encoder": _("encoder"), "decoder": _("decoder"), "cross": _("cross")}
    return _("{place} {layer} · head {head}").format(
        place=names[place], layer=layer + 1, head=head + 1
    )


def heads() -> list[tuple[str, int, int]]:
    """Every head of the network: (place, layer, head)."""
    sizes = load().sizes
    return [(place, layer, head) for place in PLACES for layer in range(sizes.layers(place))
            for head in range(sizes.h)]  # fmt: skip


def joined(words) -> str:
    """Chinese words as one writes them; a dash for none."""
    return "".join(words) or "–"
