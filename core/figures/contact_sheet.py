"""All intermediates of a trace on one sheet, small and in order: one figure, which a browser draws
faster than as many charts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from core.figures import markup, theme
from core.figures.heatmap import axes, figure, layers
from core.figures.matrices import Matrix, of_trace

MOST = 1024  # drawn cells of one matrix: more could not be told apart at this size
SPELT = 64  # cells of one matrix up to which hovering shows all digits
SLOT = 156  # pixels from one row of matrices to the next
TITLE = 38  # of which the title takes
EDGE = 12  # pixels left free at both sides
GAP = 0.02  # between two matrices, of the width


def contact_sheet(
    trace,
    pick: Mapping[str, int] | None = None,
    labels: Mapping[str, Sequence[str]] | None = None,
    text: Mapping[str, str] | None = None,
    dark: bool = False,
    current: int | str | None = None,
    *,
    columns: int = 4,
    values: Mapping | None = None,
) -> go.Figure:
    """Every step as a small heatmap on its own scale: signed around 0, shares from 0 to 1.

    `pick`: the sample and head shown, {"B": 0, "h": 0}. `labels`: names of positions, by dim.
    `text`: "pooled", see `heatmap`. `current`: the step to mark, by its place or its symbol.
    `columns`: matrices side by side; more than 4 are too narrow on a phone. `values`: tensors to
    draw instead of the trace's own, by symbol (gradients).

    >>> import core
    >>> sheet = contact_sheet(core.run(core.AttentionConfig(S=4, H=6, d_k=3)), current="Q")
    >>> sheet.data[2].name, sheet.data[2].z.shape, len(sheet.layout.shapes)
    ('Q', (4, 3), 1)
    """
    matrices = [of_trace(trace, symbol, pick, labels, MOST, values) for symbol in trace]
    slots = [_slot(place, columns, len(matrices)) for place in range(len(matrices))]
    traces, layout = [], {}
    for place, (matrix, slot) in enumerate(zip(matrices, slots, strict=True)):
        number = str(place + 1) if place else ""
        x, y = f"x{number}", f"y{number}"
        spelt = matrix.values.size <= SPELT
        traces += layers(matrix, x=x, y=y, dark=dark, text=text, spelt=spelt)
        layout[f"xaxis{number}"], layout[f"yaxis{number}"] = _fitted(matrix, x, y, slot)
    titles = [
        _title(place, step, slot, dark)
        for place, (step, slot) in enumerate(zip(trace.steps, slots, strict=True))
    ]
    marked = list(trace).index(current) if isinstance(current, str) else current
    layout |= {
        "annotations": titles,
        "shapes": [] if marked is None else [_mark(slots[marked], dark)],
        "height": _rows(len(matrices), columns) * SLOT + 16,
        "margin": {"l": EDGE, "r": EDGE, "t": 8, "b": 8},
        "showlegend": False,
        "dragmode": False,
    }
    return figure(traces, layout, dark)


def _rows(count: int, columns: int) -> int:
    return -(-count // columns)


def _slot(place: int, columns: int, count: int) -> dict:
    """Left, right, low and top of a place on the sheet, as shares of it; top includes the title."""
    row, column = divmod(place, columns)
    rows, wide = _rows(count, columns), (1 + GAP) / columns
    return {
        "left": column * wide,
        "right": column * wide + wide - GAP,
        "low": 1 - (row + 1 - 12 / SLOT) / rows,
        "top": 1 - row / rows,
        "under_title": 1 - (row + TITLE / SLOT) / rows,
    }


def _fitted(matrix: Matrix, x: str, y: str, slot: dict) -> tuple[dict, dict]:
    across, down = axes(matrix, x, y, ticks=False)
    fitted = {"constrain": "domain", "automargin": False, "fixedrange": True}
    fitted |= {"showline": True, "mirror": True}
    across |= fitted | {"domain": [slot["left"], slot["right"]], "constraintoward": "left"}
    down |= fitted | {"domain": [slot["low"], slot["under_title"]], "constraintoward": "top"}
    return across, down


def _title(place: int, step, slot: dict, dark: bool) -> dict:
    muted = theme.palette(dark).muted
    small = f'<span style="font-size:10px;color:{muted}">'
    name = f"{small}{place + 1}</span> <b>{markup.symbol(step.symbol)}</b>"
    return {
        "text": f"{name}<br>{small}{markup.shape(step.shape)}</span>",
        "x": slot["left"],
        "y": slot["top"],
        "xref": "paper",
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "top",
        "align": "left",
        "showarrow": False,
        "font": {"size": 12},
        "borderpad": 1,
    }


def _mark(slot: dict, dark: bool) -> dict:
    """A frame around one place."""
    edge = {"color": theme.palette(dark).primary, "width": 2}
    outset = GAP / 3
    return {
        "type": "rect",
        "xref": "paper",
        "yref": "paper",
        "x0": slot["left"] - outset,
        "x1": slot["right"] + outset,
        "y0": slot["low"] - (slot["top"] - slot["under_title"]) * 6 / TITLE,
        "y1": slot["top"],
        "line": edge,
        "layer": "below",
    }
