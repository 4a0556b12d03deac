"""Every head of a model on one sheet: layers down, heads across, one scale from 0 to 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from core.figures import markup, theme
from core.figures.heatmap import colour_bar, figure
from core.figures.matrices import plain

BESIDE = 1.0 / 8  # gap between heads, of a head's side
SLOT = 62  # pixels of one layer
BUDGET = 30_000  # drawn cells of a layer's heads together
MOST = 4_096  # of one head


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
    where = np.zeros((*sheet.shape, 2), np.uint8 if len(layers) < 256 else np.int16)
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


def layer_map(
    heads,
    *,
    rows: Sequence[str] = (),
    cols: Sequence[str] = (),
    titles: Sequence[str] = (),
    row_title: str = "",
    col_title: str = "",
    current: int | None = None,
    columns: int = 4,
    dark: bool = False,
    slot: int = 215,
) -> go.Figure:
    """The heads of one layer (h, S, T), larger, `columns` in a row, as a single heatmap.

    As `gallery.head_gallery`, which draws axes of its own for each head and takes the browser five
    times as long. `rows`, `cols`: names of queries and keys, for hovering. Hovering gives the names
    of the very entry that a reduced cell shows.

    >>> import torch
    >>> drawn = layer_map(torch.eye(2).expand(3, 2, 2), rows=["a", "b"], cols=["c", "d"], columns=2)
    >>> drawn.data[0].z.shape, drawn.data[0].text[1][1]
    ((5, 5), 'b → d')
    """
    most = min(MOST, BUDGET // max(len(heads), 1))
    tiles = [plain(head, most) for head in heads]
    tall, wide = (max(tile.values.shape[axis] for tile in tiles) for axis in (0, 1))
    gap = max(1, round(max(tall, wide) * BESIDE))
    lines = -(-len(tiles) // columns)
    across = min(columns, len(tiles))
    size = (lines * (tall + gap) - gap, across * (wide + gap) - gap)
    sheet, notes = np.full(size, np.nan, np.float32), []
    said = np.full(size, "", object)
    for place, tile in enumerate(tiles):
        line, column = divmod(place, columns)
        top, left = line * (tall + gap), column * (wide + gap)
        at = np.s_[top : top + tall, left : left + wide]
        sheet[at] = tile.values
        said[at] = _names(tile, rows, cols)
        title = titles[place] if place < len(titles) else str(place + 1)
        notes.append(_title(title, left - 0.5, top - 0.5, place == current, dark))
    sides = [f"{sign} {name}" for sign, name in (("↓", row_title), ("→", col_title)) if name]
    below = {"text": markup.safe(" ".join(sides)), "x": 0, "y": 0, "xref": "paper"}
    below |= {"yref": "paper", "xanchor": "left", "yanchor": "top", "yshift": -6}
    notes.append(below | {"showarrow": False})
    drawn = {
        "type": "heatmap",
        "z": sheet,
        "text": said.tolist(),
        "zmin": 0,
        "zmax": 1,
        "colorscale": theme.unit(dark),
        "colorbar": colour_bar({"zmin": 0, "zmax": 1}) | {"x": 0.5, "ypad": 30},
        "hoverongaps": False,
        "hovertemplate": "%{text}<br>%{z:.4f}<extra></extra>",
    }
    bare = {"showgrid": False, "zeroline": False, "showticklabels": False, "fixedrange": True}
    bare |= {"ticks": "", "showline": False}
    layout = {
        "xaxis": bare,
        "yaxis": bare | {"autorange": False, "range": [size[0] - 0.5, -0.5 - gap]},
        "annotations": notes,
        "height": lines * slot + 112,
        "margin": {"l": 8, "r": 8, "t": 8, "b": 84},
        "dragmode": False,
    }
    return figure([drawn], layout, dark)


def _names(tile, rows, cols) -> np.ndarray:
    """Per drawn cell, which query looks at which key there."""
    down, across = tile.values.shape
    names = [
        markup.labels(given, 20) if given else [str(i + 1) for i in range(count)]
        for given, count in zip((rows, cols), tile.size, strict=True)
    ]
    places = np.indices((down, across)).transpose(1, 2, 0) if tile.where is None else tile.where
    made = np.empty((down, across), object)
    for i, j in np.ndindex(down, across):
        query, key = places[i, j]
        made[i, j] = f"{names[0][query]} → {names[1][key]}"
    return made


def _title(text, x, y, marked, dark) -> dict:
    colours = theme.palette(dark)
    shown = markup.safe(text, 28)
    return {
        "text": f"<b>▸ {shown}</b>" if marked else shown,
        "x": x,
        "y": y,
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 12, "color": colours.primary if marked else colours.ink},
    }
