"""Editing X and the weights number by number, pasting a block, drawing a mask, and going back."""

import re

import numpy as np
import pandas as pd
import streamlit as st

from core import AttentionConfig, InputError
from parts.state import change, complain, report
from parts.text import _, prose
from parts.traces import trace

MOST = 4096  # cells a table can show without slowing the page
EDGES = "[](),;，； \t"  # what a line of a printed tensor or a file begins and ends with


def editing(config: AttentionConfig, sample: int = 0) -> None:
    """A table of one input matrix to edit and to paste into, and its way back."""
    st.markdown(prose("about/editing"))
    symbols = [*config.input_shapes(), "mask"]
    symbol = st.segmented_control(
        _("Matrix"), symbols, default="X", required=True, key="w_matrix", bind="query-params"
    )
    complain("edits")
    if symbol == "mask":
        return _mask(config)
    edited = sum(name == symbol for name, *_rest in config.edits)
    shape = config.input_shapes()[symbol]
    if shape[-1] * shape[-2] <= MOST:
        _table(config, symbol, sample if len(shape) == 3 else None)
    else:
        st.info(_("{symbol} has {cells} numbers: more than a table here can hold.").format(
            symbol=symbol, cells=f"{shape[-1] * shape[-2]:,}"))  # fmt: skip
    _paste(config, symbol, sample if len(shape) == 3 else None)
    left, right = st.columns(2)
    left.button(
        _("Reset {symbol} ({count} edited)").format(symbol=symbol, count=edited),
        disabled=not edited,
        on_click=lambda: change("edits", edits=_without(config, symbol)),
        key="w_reset_matrix",
    )
    right.button(
        _("Reset all matrices"),
        disabled=not config.edits,
        on_click=lambda: change("edits", edits=()),
        key="w_reset_matrices",
    )
    return None


def _without(config, symbol):
    return tuple(edit for edit in config.edits if edit[0] != symbol)


def _matrix(config, symbol, sample):
    tensor = trace(config)[symbol].float().cpu()
    return (tensor if sample is None else tensor[sample]).numpy()


def _table(config, symbol, sample):
    values = _matrix(config, symbol, sample)
    frame = pd.DataFrame(values.astype(float), columns=[str(i) for i in range(values.shape[1])])
    key = f"w_edit_{symbol}_{sample}_{hash(config)}"
    st.data_editor(
        frame,
        key=key,
        column_config={c: st.column_config.NumberColumn(format="%.4g") for c in frame.columns},
        on_change=lambda: _take_cells(config, symbol, sample, st.session_state[key]),
    )


def _take_cells(config, symbol, sample, changes):
    lead = () if sample is None else (sample,)
    laid = {
        (*lead, int(row), int(column)): float(value)
        for row, cells in changes["edited_rows"].items()
        for column, value in cells.items()
        if value is not None
    }
    _lay(config, symbol, laid)


def _lay(config, symbol, laid) -> bool:
    """Lay numbers over a matrix; False if that was refused."""
    kept = tuple(e for e in config.edits if not (e[0] == symbol and e[1] in laid))
    edits = kept + tuple((symbol, at, value) for at, value in laid.items())
    return change("edits", edits=edits)


# --- pasting ----------------------------------------------------------------------------------


def _paste(config, symbol, sample):
    rows, columns = config.input_shapes()[symbol][-2:]
    st.text_area(
        _("Paste {rows} × {columns} numbers for {symbol}").format(
            rows=rows, columns=columns, symbol=symbol
        ),
        key="w_paste",
        height=90,
        placeholder="0.1\t0.2\t0.3",
        help=_("A block copied from a spreadsheet: rows on lines, tabs, commas or spaces between."),
        on_change=lambda: _take_block(config, symbol, sample),
    )


def _take_block(config, symbol, sample):
    wanted = config.input_shapes()[symbol][-2:]
    try:
        block = parse_block(st.session_state["w_paste"], wanted, symbol)
    except InputError as problem:
        return report("edits", problem)
    lead = () if sample is None else (sample,)
    now = _matrix(config, symbol, sample)
    with np.errstate(over="ignore"):
        differing = np.argwhere(block.astype(np.float32) != now)
    laid = {(*lead, int(i), int(j)): float(block[i, j]) for i, j in differing}
    if _lay(config, symbol, laid):
        st.session_state["w_paste"] = ""
    return None


def parse_block(text: str, wanted: tuple[int, int], symbol: str) -> np.ndarray:
    """Numbers of a pasted block, or InputError naming its size and the one that fits.

    >>> parse_block("1\\t2\\n3,4", (2, 2), "X").tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    lines = [line.strip(EDGES) for line in text.replace("tensor(", "").splitlines()]
    lines = [re.split(r"[,;，；\s]+", line) for line in lines if line]
    try:
        rows = [[float(cell.replace("−", "-")) for cell in line] for line in lines]
    except ValueError as problem:
        shown = str(problem).partition(":")[2].strip()[:40] or "…"
        raise InputError("not-a-number", name=symbol, got=shown) from None
    widths = sorted({len(row) for row in rows})
    got = f"{len(rows)} × {'/'.join(map(str, widths)) or 0}"
    if len(rows) != wanted[0] or widths != [wanted[1]]:
        raise InputError("block", name=symbol, got=got, wanted=f"{wanted[0]} × {wanted[1]}")
    return np.array(rows)


# --- the mask ---------------------------------------------------------------------------------


def _mask(config):
    if config.S * config.T > MOST:
        cells = f"{config.S * config.T:,}"
        st.info(_("The mask has {cells} cells: more than a table here can hold.").format(
            cells=cells))  # fmt: skip
        return
    st.caption(_("Ticked: this query (row) may see this key (column)."))
    seen = np.ones((config.S, config.T), dtype=bool)
    for i, j in config.hidden:
        seen[i, j] = False
    frame = pd.DataFrame(seen, columns=[str(j) for j in range(config.T)])
    key = f"w_mask_{hash(config)}"
    st.data_editor(frame, key=key, on_change=lambda: _take_mask(config, st.session_state[key]))
    st.button(
        _("Show every key again"),
        disabled=not config.hidden,
        on_click=lambda: change("hidden", hidden=()),
        key="w_reset_mask",
    )


def _take_mask(config, changes):
    hidden = set(config.hidden)
    for row, cells in changes["edited_rows"].items():
        for column, ticked in cells.items():
            pair = (int(row), int(column))
            hidden = hidden - {pair} if ticked else hidden | {pair}
    change("hidden", hidden=tuple(sorted(hidden)))
