"""The sizes of the layer whose cost is counted: a preset, or one's own."""

import streamlit as st

from core import PRESETS, AttentionConfig, InputError
from parts.choice import choice, steps
from parts.state import escaped, sentence
from parts.text import N_, _

START = {
    "gpt2-small": N_("GPT-2 small"),
    "bert-base": N_("BERT-base"),
    "transformer": N_("First Transformer"),
    "own": N_("your own settings"),
}
LENGTHS = tuple(1 << power for power in range(4, 18))
WIDTHS = (32, 64, 128, 256, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192, 16384)
HEADS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128)
BYTES = {
    "4": N_("float32, 4 bytes"),
    "2": N_("float16 or bfloat16, 2 bytes"),
    "1": N_("8 bit, 1 byte"),
}


def layer() -> tuple[AttentionConfig | None, int]:
    """The layer asked for (None, with the reason beside the controls, if its sizes do not fit),
    and the bytes of one number."""
    with st.container(horizontal=True):
        start = choice(_("Layer"), START, "cost_layer", default="gpt2-small")
        size = choice(_("Numbers stored as"), BYTES, "cost_bytes", default="4")
    left, right = st.columns(2, gap="large")
    S = steps(_("S, sequence length"), LENGTHS, "cost_S", default=1024, place=left)
    g = steps(_("g, key/value heads"), HEADS, "cost_g", default=12, place=right)
    preset = PRESETS.get(start)
    h, H, d_k = (preset.h, preset.H, preset.d_k) if preset else _own(left, right)
    try:
        shared = min(g, h)
        chosen = AttentionConfig(S=S, H=H, h=h, g=shared, d_k=d_k, project=True, causal=True)
    except InputError as problem:
        st.error(escaped(sentence(problem)), icon=":material/error:")
        return None, int(size)
    st.caption(
        f"S = {S:,} · H = {H:,} · h = {h} · g = {shared} · d_k = d_v = {chosen.d_k}"
        + (f" · {_('g cannot be larger than h')}" if g > h else "")
    )
    return chosen, int(size)


def _own(left, right) -> tuple[int, int, int | None]:
    """h, H and d_k of one's own; d_k 0 follows as H / h."""
    H = steps(_("H, hidden size"), WIDTHS, "cost_H", default=1024, place=left)
    h = steps(_("h, heads"), HEADS, "cost_h", default=16, place=right)
    d_k = steps(
        _("d_k, key width (0: H / h)"), (0, 16, 32, 64, 96, 128, 256), "cost_d_k", default=0,
        place=left,
    )  # fmt: skip
    return h, H, d_k or None
