"""One word in two sentences: it enters with one vector and leaves with two."""

import streamlit as st

from core.numbers import write
from core.translator import load, studies
from parts.heads_tables import Cell, show, table
from parts.state import escaped, write_url
from parts.text import _, prose
from parts.translator_runs import LONGEST, joined, run
from parts.translator_sentence import fits

FIRST, SECOND = "the fisherman waits at the bank", "the banker waits at the bank"


def vectors() -> None:
    """Two sentences, a word that both have, and its cosine and distance layer by layer."""
    left, right = st.columns(2, gap="medium")
    with left:
        first = _sentence(_("First sentence"), "first", FIRST)
        one = first if fits(first) else None
    with right:
        second = _sentence(_("Second sentence"), "second", SECOND)
        two = second if fits(second) else None
    if not (one and two):
        return
    first, second = run(one), run(two)
    shared = [word for word in dict.fromkeys(first.source) if word in second.source]
    if not shared:
        st.info(_("These two sentences share no word."))
        return
    word = _word(shared)
    i, j = first.source.index(word), second.source.index(word)
    found = studies.apart(first, i, second, j)
    names = [_("word vector"), _("with its position")]
    names += [_("after layer {layer}").format(layer=n + 1) for n in range(load().sizes.encoder)]
    names.append(_("normalised, as the decoder reads it"))
    rows = [
        (name, [Cell(write(cosine), share=max(cosine, 0.0)), write(distance)])
        for name, (cosine, distance) in zip(names, found, strict=True)
    ]
    said = _("“{word}” in the first sentence beside “{word}” in the second").format(word=word)
    show(table(said, ["", _("cosine"), _("distance")], rows, name="vectors"))
    st.markdown(
        prose(
            "translator/vectors_seen" if i == j else "translator/vectors_moved",
            word=escaped(word), first=escaped(joined(first.target)),
            second=escaped(joined(second.target)),
            cosine=write(found[-2][0]), distance=write(found[-2][1]), i=i + 1, j=j + 1,
        )
    )  # fmt: skip


def _sentence(label: str, key: str, start: str) -> str:
    return st.text_input(label, start, key=key, max_chars=LONGEST, bind="query-params")


def _word(shared) -> str:
    """Which shared word is looked at; the last one unless the reader or the link says otherwise."""
    key = "shared"
    kept = st.session_state.get(key) or st.query_params.get(key, "bank")
    if kept not in shared:
        kept = shared[-1]
    if st.session_state.get(key) != kept:
        st.session_state[key] = kept
    word = st.pills(_("Word"), shared, key=key, required=True, format_func=escaped)
    write_url((key,), {key: word} if word != "bank" else {})
    return word
