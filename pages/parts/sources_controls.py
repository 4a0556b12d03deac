"""Two sequences of different lengths and widths, and who asks whom."""

import streamlit as st

from core import AttentionConfig, InputError
from core.inputs import split_sentence
from parts.choice import choice, steps
from parts.state import escaped, sentence
from parts.text import N_, _

KINDS = {"cross": N_("Y asks X (cross-attention)"), "self": N_("X asks X (self-attention)")}
SOURCE, TARGET = "the cat sat on the mat", "猫坐在垫子上"
MOST = 16  # tokens of a sentence


def asked() -> AttentionConfig | None:
    """The computation asked for; None, with the reason shown, if its sizes do not fit."""
    kind = choice(_("Who asks"), KINDS, "sources_kind", default="cross")
    left, right = st.columns(2, gap="large")
    with left:
        tokens = _tokens(_("X, the source: it answers"), "sources_X", SOURCE)
        H = steps(_("H, width of X"), (2, 3, 4, 6, 8, 12, 16), "sources_H", default=6)
        d_k = steps(_("d_k, key width"), (1, 2, 3, 4, 6, 8), "sources_d_k", default=3)
    with right:
        targets = _tokens(_("Y, the target: it asks"), "sources_Y", TARGET, kind == "self")
        H_Y = steps(_("H_Y, width of Y"), (2, 3, 4, 6, 8, 12, 16), "sources_H_Y", default=4)
        d_v = steps(_("d_v, value width"), (1, 2, 3, 4, 6, 8), "sources_d_v", default=2)
    cross = kind == "cross"
    try:
        return AttentionConfig(
            H=H, H_Y=H_Y if cross else None, d_k=d_k, d_v=d_v, cross=cross, gain=2.0, project=True,
            tokens=(tokens,), targets=(targets,) if cross else (),
        )  # fmt: skip
    except InputError as problem:
        st.error(escaped(sentence(problem)), icon=":material/error:")
        return None


def _tokens(label, key, start, disabled=False) -> tuple[str, ...]:
    """The tokens of a typed sentence; the first sentence again where nothing was typed."""
    text = st.text_input(label, start, key=key, bind="query-params", disabled=disabled)
    tokens = split_sentence(text)[:MOST] or split_sentence(start)
    st.caption(_("{count} tokens").format(count=len(tokens)))
    return tokens
