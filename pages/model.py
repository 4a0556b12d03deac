"""Any transformers model: its own attention on one's own sentence, every head measured."""

import streamlit as st

from core import models
from parts import model_choice, model_facts, model_heads, model_words
from parts.choice import choice
from parts.state import escaped
from parts.text import N_, _, prose

WHICH = {"1": N_("the first"), "2": N_("the second")}


@st.fragment
def heads(reading: models.Reading) -> None:
    """The sheet, a layer, a head and the table: only this runs again when another is chosen."""
    kind = model_heads.asked_kind(reading)
    sheet = st.container()
    current = model_heads.asked_head(reading, kind)
    with sheet:
        model_heads.sheet(reading, kind, current)
    call, head = current
    layer = reading.calls[call].layer + 1
    st.header(_("Layer {number}").format(number=layer), anchor=False)
    model_heads.layer(reading, current)
    title = _("Layer {layer}, head {head}, step by step").format(layer=layer, head=head + 1)
    st.header(title, anchor=False)
    model_heads.one_head(reading, current)
    st.header(_("What each head does"), anchor=False)
    model_facts.table(reading)
    st.header(_("What to look at"), anchor=False)
    model_facts.findings(reading)


@st.fragment
def words(first: models.Reading, second: models.Reading) -> None:
    """The word chosen, in both sentences."""
    model_words.compared(first, second)


st.title(_("Model"))
st.markdown(prose("model/intro"))
model = model_choice.chosen()
if model:
    text, other = model_choice.texts(model)
    one = model_choice.together(model, other)
    target, beside = (other if model.pairs else ""), (other if one else "")
    first = model_choice.read(model, text, target, beside=beside)
    second = None
    if other.strip() and not (model.pairs or one):
        second = model_choice.read(model, other, key="second")
    shown = first
    if first and second:
        which = choice(_("Look at sentence"), WHICH, "model_which", default="1")
        shown = first if which == "1" else second
    if shown:
        model_heads.tokens(shown)
        st.caption(
            _("{name}: {calls} attention calls of {heads} heads. These weights differ from the "
              "model’s own by at most {by}.").format(
                name=escaped(model.name), calls=len(shown.calls),
                heads=shown.calls[0].heads, by=f"{shown.deviation:.1g}")
        )  # fmt: skip
        st.header(_("All heads"), anchor=False)
        st.markdown(prose("model/sheet"))
        heads(shown)
    if first and second:
        st.header(_("One word, two vectors"), anchor=False)
        words(first, second)
