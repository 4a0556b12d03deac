"""The translator: weights that were really trained, translated with word by word and opened."""

import streamlit as st

from parts import translator_attention as attention
from parts import translator_cuts as cuts
from parts import translator_steps as steps
from parts.heads_tables import STYLE
from parts.text import _, prose
from parts.translator_runs import run
from parts.translator_sentence import asked
from parts.translator_training import CODE, figures, training
from parts.translator_vectors import vectors

st.title(_("Translator"))
st.html(STYLE)
st.markdown(prose("translator/intro", **figures()))
text = asked()
if text:
    away = cuts.edits(text)
    cuts.taken(text, away)
    made = run(text, away)

    st.header(_("Word by word"), anchor=False)
    at = steps.stepping(made)
    steps.words_so_far(made, at)
    steps.looking(made, at)
    steps.cache(made, at)

    st.header(_("One attention, opened"), anchor=False)
    place, layer = attention.chosen()
    attention.opened(text, away, place, layer, at)

    st.header(_("Cut and see"), anchor=False)
    st.markdown(prose("translator/cut"))
    cuts.controls(text, place, layer)
    cuts.before_and_after(text, away)
    cuts.resting(text, away, at)
    cuts.swapping(text, away)

    st.header(_("One word, two vectors"), anchor=False)
    st.markdown(prose("translator/vectors"))
    vectors()

    st.header(_("How it was trained"), anchor=False)
    training()
    st.header(_("The same in PyTorch"), anchor=False)
    st.code(CODE.format(text=text), language="python", wrap_lines=True)
