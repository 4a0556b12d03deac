"""The attention heads of a model that reads the reader's text, as a source of Q and K."""

from hashlib import blake2b

import streamlit as st

from core import models
from core.errors import InputError
from core.longmap_sources import Source, captured
from parts.choice import choice
from parts.state import escaped, sentence
from parts.text import _, prose

LETTERS = 12_000  # of a text; far beyond what a model reads here


def offered() -> bool:
    """Whether there is a model at all."""
    return bool(models.offered())


def heads_of_a_model() -> tuple[Source | None, str]:
    """The controls, and the heads of the layer that is chosen; what does not fit is said."""
    names = {name: name for name in models.offered()}
    name = choice(_("Model"), names, "map_model", default=next(iter(names)))
    text = st.text_area(
        _("Text"), prose("map/model_text"), key="map_text", bind="query-params",
        max_chars=LETTERS, height=110,
    )  # fmt: skip
    try:
        with st.spinner(_("Reading …"), show_time=True):
            reading = models.read(models.load(name), text, cut=True)
        layer = _layer(reading)
        words = [token.label for token in reading.sides(layer)[0]]
        source = captured(reading.calls[layer], words)
    except InputError as problem:
        st.error(escaped(sentence(problem)), icon=":material/error:")
        return None, ""
    if len(words) >= models.load(name).limit:
        st.caption(_("Texts of more than {most} tokens are cut.").format(most=len(words)))
    digest = blake2b(repr((name, text, layer)).encode()).hexdigest()
    return source, digest


def _layer(reading) -> int:
    """The number of the call whose heads are shown; those across two texts are left out."""
    within = [n for n, call in enumerate(reading.calls) if call.kind != "cross"]
    names = {str(place + 1): str(place + 1) for place in range(len(within))}
    return within[int(choice(_("Layer"), names, "map_layer", default="1")) - 1]
