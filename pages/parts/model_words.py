"""The same word in two sentences: its vector by layer, and the heads that tell the two apart."""

from __future__ import annotations

from functools import lru_cache

import streamlit as st

from core import models
from core.figures import STILL, Series, curves
from parts.model_facts import name_of
from parts.tables import table
from parts.text import _, prose

FEW = 8  # heads named


@lru_cache(maxsize=4)
def _compared(first, second, word):
    return models.compare(first, second, word)


def compared(first: models.Reading, second: models.Reading) -> None:
    """A word that both sentences have: cosine and distance, layer by layer."""
    words = models.shared(first, second)
    if not words:
        st.info(prose("model/words_none"))
        return
    linked = st.query_params.get("model_word")
    if st.session_state.get("model_word") not in words:
        st.session_state["model_word"] = linked if linked in words else words[0]
    word = st.selectbox(_("Word"), words, key="model_word")
    st.query_params["model_word"] = word
    found = _compared(first, second, word)
    names = [_("as it enters"), _("with its position")]
    names += [_("after layer {number}").format(number=i + 1) for i in range(len(found.layers) - 2)]
    start, end = found.layers[0], found.layers[-1]
    st.markdown(prose("model/words", cosine=f"{end.cosine:.2f}", distance=f"{end.distance:.2f}",
                      first=f"{start.cosine:.2f}"))  # fmt: skip
    left, right = st.columns([4, 5], gap="large")
    with left:
        rows = [
            (name, _number(apart.cosine), f"{apart.distance:.2f}")
            for name, apart in zip(names, found.layers, strict=True)
        ]
        table(_("The vector of this word, layer by layer"), ("", _("cosine"), _("distance")), rows)
    with right:
        _chart(found)
    _heads(first, found)


def _chart(found) -> None:
    line = Series(_("cosine"), list(range(-1, len(found.layers) - 1)),
                  [apart.cosine for apart in found.layers])  # fmt: skip
    figure = curves([line], x_title=_("layer (−1: as it enters)"), y_title=_("cosine"),
                    dark=st.context.theme.type == "dark")  # fmt: skip
    said = _("Cosine of the two vectors by layer")
    st.plotly_chart(figure, theme=None, config=STILL, key="model_words", alt=said)


def _heads(first, found) -> None:
    """The heads that gave the word the most different vectors."""
    apart = sorted(found.heads.items(), key=lambda item: item[1])
    chosen = apart[:FEW]
    rows = [(name_of(first, at), _number(cosine)) for at, cosine in chosen]
    table(_("Heads that differ most here (layer.head)"), ("", _("cosine of what they give")), rows)


def _number(x: float) -> str:
    """Three decimals, with a true minus.

    >>> _number(-0.5)
    '−0.500'
    """
    return f"{x:.3f}".replace("-", "−")
