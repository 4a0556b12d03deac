"""MHA, GQA, MQA: who reads which key/value head, what a repeat costs, what a layer needs."""

import streamlit as st

from core import AttentionConfig, head_sharing
from core.head_sharing import MODELS
from parts.heads_controls import choose, fit, number, row
from parts.heads_tables import Cell, head_map, show, table
from parts.text import N_, _, prose

MODEL_LABELS = {
    "transformer": N_("Original Transformer"),
    "bert-base": N_("BERT-base"),
    "gpt2-small": N_("GPT-2 small"),
}
KEYS = ("share_H", "share_h", "share_d")
TOKENS = 1024  # for what a whole context costs


def sharing() -> None:
    """Controls, the map, the repeat, the bill."""
    st.markdown(prose("heads/sharing"))
    config = _controls()
    if config is None:
        return
    h, g = config.h, config.g
    facts = {"h": h, "g": g, "r": h // g, "d_k": config.d_k, "H": config.H}
    owners = head_sharing.head_map(h, g)
    title = _("{name}: {h} query heads, {g} key/value heads")
    caption = title.format(name=head_sharing.name(h, g), h=h, g=g)
    show(head_map(caption, (_("query head"), _("reads key/value head")), ("q", "kv"), owners))
    st.markdown(prose("heads/sharing_repeat", **facts))
    show(_repeats(config))
    st.markdown(prose("heads/sharing_cost", **facts, one_head=f"{head_sharing.one_head(config):,}"))
    show(_budgets(config))


def _controls() -> AttentionConfig | None:
    models = st.container()
    with row():
        H = number(_("H, hidden size"), "share_H", 768, 1, 4096)
        h = number(_("h, query heads"), "share_h", 12, 1, 64)
        d_k = number(_("d_k, width of a head"), "share_d", 64, 1, 256)
    with models:
        _models((H, h, d_k))
    shared = {str(g): str(g) for g in range(h, 0, -1) if h % g == 0}
    g = int(choose(_("g, key/value heads"), shared, "share_g"))
    dtype = choose(_("Data type"), ("float16", "bfloat16", "float32", "float64"), "share_dtype")
    return fit(S=1, H=H, h=h, g=g, d_k=d_k, dtype=dtype)


def _models(now: tuple[int, int, int]) -> None:
    """Known models as a start: they set H, h and d_k."""
    sizes = {n: (m["H"], m["h"], m["H"] // m["h"]) for n, m in MODELS.items()}
    fits = [name for name, values in sizes.items() if values == now]
    if st.session_state.get("share_model") not in fits:
        st.session_state["share_model"] = fits[0] if fits else None

    def take():
        if chosen := st.session_state["share_model"]:
            st.session_state.update(zip(KEYS, sizes[chosen], strict=True))

    st.pills(
        _("Model"),
        list(MODELS),
        key="share_model",
        format_func=lambda name: _(MODEL_LABELS[name]),
        on_change=take,
    )


def _repeats(config: AttentionConfig) -> str:
    T = 16
    held = head_sharing.repeats(config.h, config.g, T, config.d_k, config.dtype)
    head = (_("PyTorch"), _("Shape"), _("Strides"), _("Storage in bytes"), _("Memory"))
    rows = [
        (
            f"`{one.code}`",
            [
                Cell(str(one.shape), code=True),
                Cell(str(one.strides), code=True),
                f"{one.bytes:,}",
                _("K itself") if i == 0 else _("view of K") if one.shares else _("copy"),
            ],
        )
        for i, one in enumerate(held)
    ]
    caption = _("K (g, T, d_k) with T = {T}, made ready for {h} query heads")
    return table(caption.format(T=T, h=config.h), head, rows, name="repeats")


def _budgets(config: AttentionConfig) -> str:
    head = (
        "g",
        _("Kind"),
        _("W_Q and W_O"),
        _("W_K and W_V"),
        _("Parameters"),
        _("Cache, bytes per token"),
        _("Cache, KiB for {tokens} tokens").format(tokens=f"{TOKENS:,}"),
    )
    listed = head_sharing.budgets(config)
    rows = [
        (
            str(one.g),
            [
                one.name,
                f"{one.query_parameters:,}",
                f"{one.shared_parameters:,}",
                f"{one.parameters:,}",
                f"{one.cache_bytes:,}",
                f"{one.cache_bytes * TOKENS / 1024:,.0f}",
            ],
        )
        for one in listed
    ]
    current = [one.g for one in listed].index(config.g)
    return table(_("One layer, for every possible g"), head, rows, current=current, name="budgets")
