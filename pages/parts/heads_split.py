"""The split and the way back: the right way in the microscope, three wrong ways measured."""

from functools import lru_cache

import streamlit as st

from core import AttentionConfig, heads
from core.numbers import write
from core.trace import TracedStep
from parts import microscope
from parts.heads_controls import choose, sizes
from parts.heads_tables import Cell, show, table
from parts.text import _, prose

WAYS = ("right", "split", "merge", "across")
KEY = "heads_microscope"

journey = lru_cache(maxsize=64)(heads.journey)
compare = lru_cache(maxsize=128)(heads.compare)
influence = lru_cache(maxsize=128)(heads.influence)


def split() -> None:
    """The part's controls, then the way that is chosen."""
    config = sizes(batch=True)
    labels = (
        _("The right way"),
        _("✗ Split without transpose"),
        _("✗ Merge without transpose"),
        _("✗ Product without transpose"),
    )
    way = choose(_("Way"), dict(zip(WAYS, labels, strict=True)), "way")
    if config is None:
        return
    if way == "right":
        _right(config)
    else:
        _wrong(config.changed(B=config.B or 1), way)


# --- the right way ------------------------------------------------------------------------------


def _right(config: AttentionConfig) -> None:
    st.markdown(prose("heads/right", S=config.S, H=config.H, h=config.h, d_k=config.d_k))
    trace = journey(config.S, config.H, config.h, config.B)
    described, values = heads.drawn(trace)
    dims = {n: facts | {"name": _(facts["name"])} for n, facts in described["dims"].items()}
    described |= {"dims": dims}
    start = _place(list(trace))
    chosen = microscope.show(described, values, key=KEY, step=start, on_change=_remember)
    step = trace.steps[chosen.step]
    st.code(step.code, language="python", wrap_lines=True)
    st.markdown(prose(f"heads/move_{step.text}", **trace.sizes))
    show(_steps(trace, chosen.step))


def _place(symbols: list[str]) -> int:
    """The step that the address names, else the first."""
    named = st.query_params.get("move", "")
    return symbols.index(named) if named in symbols else 0


def _remember(chosen: microscope.Chosen) -> None:
    symbols = list(journey(2, 2, 2))
    if chosen.step:
        st.query_params["move"] = symbols[chosen.step]
    else:
        st.query_params.pop("move", None)


def _steps(trace, current: int) -> str:
    head = ("", _("Dims"), _("Shape"), _("Strides"), _("Memory"))
    rows = [
        (
            step.symbol,
            [
                Cell(" × ".join(step.dims.split()), code=True),
                Cell(str(step.shape), code=True),
                Cell(str(step.strides), code=True),
                _memory(step),
            ],
        )
        for step in trace.steps
    ]
    return table(_("All steps"), head, rows, current=current, name="steps")


def _memory(step: TracedStep) -> str:
    if step.shares:
        return _("view of {symbol}").format(symbol=step.shares)
    return _("{bytes} bytes, new").format(bytes=f"{step.bytes:,}")


# --- the wrong ways -----------------------------------------------------------------------------


def _wrong(config: AttentionConfig, way: str) -> None:
    sizes = {"S": config.S, "H": config.H, "h": config.h, "d_k": config.d_k, "B": config.B}
    st.markdown(prose(f"heads/wrong_{way}", **sizes))
    _code(way)
    found = compare(config, way)
    if way == "across":
        _weights(found, config)
    else:
        _landing(config, way)
    facts = {"largest": write(found.largest, 3), "scale": write(found.scale, 3)}
    same = "same" if found.largest == 0 else "differs"
    st.markdown(prose(f"heads/result_{same}", **facts, **sizes))
    show(_per_token(found))
    st.markdown(prose(f"heads/look_{way}", **sizes))
    _who_moves_whom(config.changed(B=1, causal=way != "across"), way)


def _code(way: str) -> None:
    right, wrong = heads.CODE[way]
    for column, label, line in zip(
        st.columns(2), ("**✓** " + _("Right"), "**✗** " + _("Wrong")), (right, wrong), strict=True
    ):
        column.markdown(label)
        column.code(line, language="python", wrap_lines=True)


def _landing(config: AttentionConfig, way: str) -> None:
    """Both tensors cell by cell, coloured by the token each number belongs to, and the counts."""
    S, h, d_k = config.S, config.h, config.d_k
    wrong = heads.origins(S, h, d_k, way)
    if way == "split":
        right = heads.origins(S, h, d_k, "right")
        block = _("head {number}")
        captions = (_("✓ Q_heads: cells named “token,column”"), _("✗ The same shape, other cells"))
        draw = _blocks
    else:
        right = heads.origins(S, h, d_k, "back")
        block = _("row {number}")
        captions = (_("✓ merged: cells named “token,column”"), _("✗ The same shape, other cells"))
        draw = _rows
    show(*(draw(caption, o) for caption, o in zip(captions, (right, wrong), strict=True)))
    show(
        _counts(_("✓ Numbers of each token"), right, block, "counts-right"),
        _counts(_("✗ Numbers of each token"), wrong, block, "counts-wrong"),
    )


def _named(cell) -> Cell:
    token, column = cell
    return Cell(f"{token + 1},{column + 1}", token)


def _blocks(caption: str, found: heads.Origins) -> str:
    """(h, S, d_k): the heads below each other."""
    rows = [
        (_("head {number}").format(number=i + 1) if j == 0 else "", [_named(c) for c in row])
        for i, block in enumerate(found.cells)
        for j, row in enumerate(block)
    ]
    return table(caption, ["", *_columns(found.shape[-1])], rows, name="origins")


def _rows(caption: str, found: heads.Origins) -> str:
    """(S, h·d_v): one row per token of the result."""
    rows = [
        (_("row {number}").format(number=i + 1), [_named(c) for c in row])
        for i, row in enumerate(found.cells)
    ]
    return table(caption, ["", *_columns(found.shape[-1])], rows, name="origins")


def _columns(count: int) -> list[str]:
    return [str(i + 1) for i in range(count)]


def _tokens(count: int) -> list[str]:
    return [_("token {number}").format(number=i + 1) for i in range(count)]


def _counts(caption: str, found: heads.Origins, block: str, name: str) -> str:
    rows = [
        (
            block.format(number=i + 1),
            [Cell(str(n), s) if n else Cell("0") for s, n in enumerate(row)],
        )
        for i, row in enumerate(found.counts)
    ]
    return table(caption, ["", *_tokens(len(found.counts[0]))], rows, name=name)


def _weights(found: heads.Comparison, config: AttentionConfig) -> None:
    """The weights of the right product beside those of the wrong one, with their shapes."""
    right, wrong = (routed.attention["weights"][0, 0].tolist() for routed in found[:2])
    shapes = [routed.attention.shape("weights") for routed in found[:2]]
    tokens, which = _tokens(config.S), _columns(config.h)
    captions = (
        _("✓ weights {shape}: head 1, token to token"),
        _("✗ weights {shape}: token 1, head to head"),
    )
    names = (tokens, [_("head {number}").format(number=n) for n in which])
    show(
        *(
            _shares(caption.format(shape=shape), named, named, numbers, 1.0, name)
            for caption, shape, named, numbers, name in zip(
                captions, shapes, names, (right, wrong), ("weights-right", "weights-wrong"),
                strict=True,
            )
        )
    )  # fmt: skip


def _shares(caption, down, across, numbers, whole, name) -> str:
    rows = [
        (label, [Cell(write(x, 3), share=abs(x) / whole if whole else 0) for x in row])
        for label, row in zip(down, numbers, strict=True)
    ]
    return table(caption, ["", *across], rows, name=name)


def _per_token(found: heads.Comparison) -> str:
    cells = [
        Cell(write(x, 3), share=min(1.0, x / found.scale) if found.scale else 0)
        for x in found.per_token
    ]
    head = ["", *_tokens(len(cells))]
    rows = [(_("largest |difference|"), cells)]
    return table(_("Result, right way against wrong way"), head, rows, name="difference")


def _who_moves_whom(config: AttentionConfig, way: str) -> None:
    tables = {which: influence(config, which) for which in ("right", way)}
    whole = max(x for rows in tables.values() for row in rows for x in row)
    moved = [_("row {number}").format(number=i + 1) for i in range(config.S)]
    captions = (_("✓ How far row i moves with token j"), _("✗ How far row i moves with token j"))
    show(
        *(
            _shares(caption, moved, _tokens(config.S), numbers, whole, f"influence-{which}")
            for caption, (which, numbers) in zip(captions, tables.items(), strict=True)
        )
    )
