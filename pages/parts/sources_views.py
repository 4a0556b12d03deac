"""The table of who gives what, and the product that does not fit, run live."""

import pandas as pd
import streamlit as st

import core
from core import InputError
from parts.state import escaped, sentence
from parts.text import N_, _
from parts.traces import trace

GIVES = {
    "Q": N_("what am I looking for?"),
    "K": N_("what can I be found by?"),
    "V": N_("what do I give once chosen?"),
}


def table(config) -> None:
    """Per role: the sequence it comes from, the shape of its W, and why it has that shape."""
    computed = trace(config)
    rows = []
    for symbol, question in GIVES.items():
        source, weight = computed.step(symbol).reads
        columns = "d_v" if symbol == "V" else "d_k"
        rows.append(
            {
                _("Role"): symbol,
                _("asks or says"): _(question),
                _("comes from"): f"{source} {computed.shape(source)}",
                _("through"): f"{weight} {computed.shape(weight)}",
                _("because"): _("rows as wide as {source}, columns {columns}").format(
                    source=source, columns=columns
                ),
                _("Shape"): str(computed.shape(symbol)),
            }
        )
    st.table(pd.DataFrame(rows).set_index(_("Role")))
    shape, grid = computed.shape("projected"), computed.shape("scores")
    st.markdown(
        _("The scores are {grid}: one row per asker, one column per answerer. W_O brings the "
          "result back to the asker's width: {shape}.").format(grid=grid, shape=shape)
    )  # fmt: skip


def misfit(config) -> None:
    """What the engine says when the queries are made with a matrix as wide as the other side."""
    computed = trace(config)
    asker = computed["Y"] if config.cross else computed["X"]
    X, W_K, W_V = computed["X"], computed["W_K"], computed["W_V"]
    if asker.shape[-1] == X.shape[-1]:
        st.success(_("Here both are {width} wide: W_K would fit in the place of W_Q.").format(
            width=X.shape[-1]))  # fmt: skip
        return
    try:
        core.cross_attention(asker, X, W_K, W_K, W_V)
    except InputError as problem:
        st.error(escaped(sentence(problem)), icon=":material/error:")
