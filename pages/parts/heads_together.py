"""All heads side by side: their weights, and what each adds to the projected output."""

from functools import lru_cache

import streamlit as st

from core import AttentionConfig, heads
from core.figures import CONFIG
from core.figures.gallery import head_gallery
from core.inputs import split_sentence
from core.numbers import write
from parts.controls import SENTENCE
from parts.heads_controls import choose, fit, number, row, switch
from parts.heads_tables import Cell, show, table
from parts.state import escaped
from parts.text import _, language, prose
from parts.traces import trace

LONGEST = 12  # tokens
COLUMNS = 4  # heads in a row
contributions = lru_cache(maxsize=64)(lambda config: heads.contributions(trace(config)))


def together() -> None:
    """A sentence, its weights head by head, and the sum for one chosen token."""
    config = _controls()
    if config is None:
        return
    st.markdown(prose("heads/together", h=config.h, S=config.S, d_v=config.d_v, H=config.H))
    _gallery(config)
    st.markdown(prose("heads/together_sum", h=config.h, d_v=config.d_v))
    names = {str(i): f"{i + 1} {escaped(token)}" for i, token in enumerate(config.tokens[0])}
    place = int(choose(_("Row of the result"), names, "row"))
    found = contributions(config)
    facts = {"difference": write(found.difference, 3), "h": config.h}
    show(_sum(config, place), _lengths(config))
    st.markdown(prose("heads/together_checked", **facts))


def _controls() -> AttentionConfig | None:
    with row():
        text = st.text_input(
            _("Sentence"), SENTENCE[language()], key="heads_sentence", max_chars=80, width=300,
            bind="query-params", persist_state="session",
        )  # fmt: skip
        H = number(_("H, hidden size"), "heads_H", 8, 1, 16)
        h = number(_("h, heads"), "heads_h", 2, 1, 8)
        causal = switch(_("Only earlier keys"), "heads_causal", _("The causal mask."))
    tokens = split_sentence(text)[:LONGEST]
    if not tokens:
        st.error(_("Write at least one word."), icon=":material/error:")
        return None
    return fit(H=H, h=h, tokens=(tokens,), causal=causal, project=True, gain=2.0)


def _gallery(config: AttentionConfig) -> None:
    """The weights of every head, on one scale."""
    weights = trace(config)["weights"].reshape(config.h, config.S, config.S)
    figure = head_gallery(
        weights,
        titles=[_("head {number}").format(number=i + 1) for i in range(config.h)],
        rows=config.tokens[0],
        cols=config.tokens[0],
        row_title=_("query"),
        col_title=_("key"),
        columns=min(config.h, COLUMNS),
        dark=st.context.theme.type == "dark",
    )
    said = _("Weights of {h} heads as heatmaps: queries down, keys across").format(h=config.h)
    st.plotly_chart(figure, theme=None, config=CONFIG, key="heads_gallery", alt=said)


def _sum(config: AttentionConfig, place: int) -> str:
    """One row of the result as a sum: a row per head, their sum, and the row of the engine."""
    parts = contributions(config).parts[:, place]
    engine = trace(config)["projected"][place].tolist()
    largest = max(map(abs, [*parts.flatten().tolist(), *engine]))
    rows = [
        (_("head {number}").format(number=i + 1), [Cell(write(x, 3), i) for x in part])
        for i, part in enumerate(parts.tolist())
    ]
    rows += [
        (label, [Cell(write(x, 3), share=abs(x) / largest if largest else 0) for x in numbers])
        for label, numbers in ((_("sum"), parts.sum(0).tolist()), ("projected", engine))
    ]
    head = ["", *(str(i + 1) for i in range(config.H))]
    caption = _("What each head adds to “{token}”").format(token=config.tokens[0][place])
    return table(caption, head, rows, rule=len(rows) - 2, name="sum")


def _lengths(config: AttentionConfig) -> str:
    """How much each head adds to each token: the length of what it adds."""
    sizes = contributions(config).parts.norm(dim=-1).tolist()
    largest = max(map(max, sizes))
    rows = [
        (
            _("head {number}").format(number=i + 1),
            [Cell(write(x, 3), share=x / largest if largest else 0) for x in line],
        )
        for i, line in enumerate(sizes)
    ]
    return table(_("Length of what each head adds"), ["", *config.tokens[0]], rows, name="lengths")
