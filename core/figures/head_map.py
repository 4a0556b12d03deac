"""Every head of a model on one sheet: layers down, heads across, one scale from 0 to 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from core.figures import markup, theme
from core.figures.heatmap import colour_bar, figure

BESIDE = 1.0 / 8  # gap between heads, of a head's side
SLOT = 62  # pixels of one layer


def head_map(
    layers: Sequence[np.ndarray],
    *,
    current: tuple[int, int] | None = None,
    text: Mapping[str, str] | None = None,
    dark: bool = False,
) -> go.Figure:
    """One small picture per head. `layers`: (h, rows, cols) each, shares from 0 to 1; heads of
    unequal sizes keep theirs. `current`: (layer, head) to frame. `text`: "layer", "head", "weight".

    >>> sheet = head_map([np.ones((2, 3, 3)), np.zeros((1, 3, 3))])
    >>> sheet.data[0].z.shape, sheet.layout.yaxis.ticktext
    ((7, 7), ('1', '2'))
    """
    said = {"layer": "layer", "head": "head", "weight": "weight"} | dict(text or {})
    side = max(max(layer.shape[1:]) for layer in layers)
    gap = max(1, round(side * BESIDE))
    step = side + gap
    across = max(len(layer) for layer in layers)
    sheet = np.full((len(layers) * step - gap, across * step - gap), np.nan, np.float32)
    where = np.zeros((*sheet.shape, 2), np.int16)
    for row, layer in enumerate(layers):
        for column, head in enumerate(layer):
            at = np.s_[row * step : row * step + side, column * step : column * step + side]
            where[at] = row + 1, column + 1
            tall, wide = head.shape
            sheet[at][:tall, :wide] = head
    colours = theme.palette(dark)
    drawn = {
        "type": "heatmap",
        "z": sheet,
        "customdata": where,
        "zmin": 0,
        "zmax": 1,
        "colorscale": theme.unit(dark),
        "colorbar": colour_bar({"zmin": 0, "zmax": 1}),
        "hoverongaps": False,
        "hovertemplate": f"{markup.safe(said['layer'])} %{{customdata[0]}} · "
        f"{markup.safe(said['head'])} %{{customdata[1]}}<br>{markup.safe(said['weight'])} "
        "%{z:.3f}<extra></extra>",
    }
    layout = {
        # Few heads do not fill the width: they would be drawn flat.
        "xaxis": _axis(across, step, side, said["head"])
        | {"side": "top", "domain": [0, min(1, max(0.5, across / 10))]},
        "yaxis": _axis(len(layers), step, side, said["layer"])
        | {"autorange": False, "range": [len(layers) * step - 0.5, -0.5 - gap / 2]},
        "height": len(layers) * SLOT + 130,
        "margin": {"l": 56, "r": 8, "t": 56, "b": 70},
        "plot_bgcolor": colours.ground,
        "dragmode": False,
        "shapes": _frame(current, step, side, gap, colours.primary),
    }
    return figure([drawn], layout, dark)


def blank(dark: bool = False) -> go.Figure:
    """Nothing, of the height of a line: what makes a browser fetch Plotly ahead of time.

    >>> len(blank().data)
    0
    """
    away = {"visible": False}
    layout = {"height": 30, "margin": dict.fromkeys("lrtb", 0), "xaxis": away, "yaxis": away}
    return figure([], layout, dark)


def _axis(count: int, step: int, side: int, title: str) -> dict:
    """Numbers from 1 in the middle of each head; every other one where they are many."""
    every = 1 if count <= 16 else 2 if count <= 32 else 4
    places = range(0, count, every)
    return {
        "tickmode": "array",
        "tickvals": [place * step + (side - 1) / 2 for place in places],
        "ticktext": [str(place + 1) for place in places],
        "title": {"text": markup.safe(title), "standoff": 6},
        "showgrid": False,
        "zeroline": False,
        "showline": False,
        "ticks": "",
        "fixedrange": True,
    }


def _frame(current, step, side, gap, colour) -> list[dict]:
    if current is None:
        return []
    row, column = current
    x, y, out = column * step - 0.5, row * step - 0.5, gap / 2
    edge = {"x0": x - out, "x1": x + side + out, "y0": y - out, "y1": y + side + out}
    return [edge | {"type": "rect", "line": {"color": colour, "width": 3}}]
