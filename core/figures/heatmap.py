"""A matrix as Plotly traces: numbers in colours, and every special number marked.

−∞ lies on a ground of its own and is hatched, NaN and +∞ have a ground of their own; hovering says
the index, the number, and the names of row and column.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from core.figures import markup, theme
from core.figures.matrices import Matrix, plain
from core.numbers import write

SPELT = 1024  # cells: up to here hovering shows the shortest digits that identify the number
HATCHED = 2500  # cells of −∞: up to here they are hatched, beyond only tinted
FEW = 64  # cells of −∞: up to here each gets three strokes
STROKES = ((0.0, 0.5), (0.0, 1.0), (0.5, 1.0))  # from left-low (a, b) to right-high (b, a)
INKED = 400  # cells: up to here a single heatmap writes its numbers into them
SMALL = 64  # cells: up to here −∞ is written even where numbers are not
TICKS = 24  # names along one side
SQUEEZE = 6  # the longest side that a matrix is drawn with, times its shorter one

POOLED = (
    "max |x| · {rows} × {cols}"  # said of a cell that stands for a block, unless text["pooled"]
)


def figure(traces: Sequence[dict], layout: dict, dark: bool, frames=None) -> go.Figure:
    """A figure in our own template, from plain dicts: validating takes longer than building."""
    layout = {"template": theme.template(dark)} | layout
    return go.Figure(data=list(traces), layout=layout, frames=frames, _validate=False)


def heatmap(
    values,
    *,
    symbol: str = "",
    rows: Sequence[str] = (),
    cols: Sequence[str] = (),
    row_title: str = "",
    col_title: str = "",
    unit: bool = False,
    largest: float | None = None,
    numbers: bool | None = None,
    text: Mapping[str, str] | None = None,
    dark: bool = False,
    height: int | None = None,
) -> go.Figure:
    """One matrix (rows, cols): row 0 on top, names at its ticks, a colour bar.

    `values`: a tensor, an array, nested lists, or a `Matrix`. `unit`: read on a scale from 0 to 1,
    else from −`largest` to `largest` (default: the largest finite magnitude). Rows that carry the
    same name stay apart. `numbers`: written into the cells (default: while they fit). `text`:
    "pooled", with {rows} and {cols}.

    >>> figure = heatmap([[1.0, float("-inf")]], symbol="scores", cols=["the", "the"])
    >>> figure.data[0].z.tolist(), figure.layout.xaxis.ticktext
    ([[1.0, nan]], ('the', 'the'))
    """
    matrix = values
    if not isinstance(values, Matrix):
        names = markup.labels(rows), markup.labels(cols)
        matrix = plain(values, symbol=symbol, unit=unit, rows=names[0], cols=names[1])
    count = matrix.values.size
    inked = count <= INKED if numbers is None else numbers
    traces = layers(matrix, dark=dark, text=text, largest=largest, numbers=inked)
    traces[0] |= {"showscale": True, "colorbar": colour_bar(traces[0])}
    x, y = axes(matrix)
    x |= {"side": "top", "title": {"text": markup.safe(col_title)}, "constrain": "domain"}
    y |= {"title": {"text": markup.safe(row_title)}, "constrain": "domain"}
    longest = max(map(len, matrix.col_names), default=2)
    height = height or int(min(480, max(120, 44 * matrix.size[0]))) + 110 + 7 * longest
    return figure(traces, {"xaxis": x, "yaxis": y, "height": height}, dark)


def colour_bar(trace: Mapping) -> dict:
    """A short colour bar under the drawing, with three numbers at it."""
    low, high = trace["zmin"], trace["zmax"]
    places = [low, (low + high) / 2, high]
    return {
        "orientation": "h",
        "y": 0,
        "yanchor": "top",
        "lenmode": "pixels",
        "len": 200,
        "outlinewidth": 0,
        "thickness": 10,
        "tickvals": places,
        "ticktext": [write(place, 3) for place in places],
    }


# --- axes -------------------------------------------------------------------------------------


def axes(matrix: Matrix, x: str = "x", y: str = "y", ticks: bool = True) -> tuple[dict, dict]:
    """The axes under a matrix: a cell as wide as high, row 0 on top, names at index positions.

    Without `ticks` the names are still there for hovering. Beyond 6 : 1 cells are squeezed.
    """
    rows, cols = matrix.size
    squeeze = max(1.0, rows / cols / SQUEEZE) / max(1.0, cols / rows / SQUEEZE)
    across = _axis(matrix.col_names, cols, ticks) | {"range": [-0.5, cols - 0.5], "anchor": y}
    down = _axis(matrix.row_names, rows, ticks) | {"range": [rows - 0.5, -0.5], "anchor": x}
    return across, down | {"scaleanchor": x, "scaleratio": 1 / squeeze}


def _axis(names: Sequence[str], count: int, ticks: bool) -> dict:
    axis = {"showgrid": False, "zeroline": False, "ticks": "", "showticklabels": ticks}
    if not names:
        return axis | {"tickmode": "auto", "tickformat": "d", "nticks": TICKS // 2}
    places = range(0, count, math.ceil(count / TICKS) if ticks else 1)
    named = {"tickvals": list(places), "ticktext": [names[i] for i in places]}
    return axis | named | {"tickmode": "array"}


# --- traces -----------------------------------------------------------------------------------


def layers(
    matrix: Matrix,
    *,
    x: str = "x",
    y: str = "y",
    dark: bool = False,
    text: Mapping[str, str] | None = None,
    largest: float | None = None,
    spelt: bool | None = None,
    numbers: bool = False,
) -> list[dict]:
    """The traces of one matrix: its finite numbers, then those that no colour scale holds.

    `spelt`: hovering shows the shortest digits that identify the number, else seven.
    """
    values = matrix.values
    finite = np.isfinite(values)
    top = 1 if matrix.unit else largest or matrix.largest
    spelt = (values.size <= SPELT if spelt is None else spelt) and matrix.where is None
    trace = _place(matrix, x, y) | {
        "z": np.where(finite, values, np.nan),
        "zmin": 0 if matrix.unit else -top,
        "zmax": top,
        "hovertemplate": hover(matrix, "%{customdata}" if spelt else "%{z:.7~g}", text or {}),
    }
    if spelt:
        trace["customdata"] = [[digits(value) for value in row] for row in values]
    if numbers:
        trace["text"] = [[write(value, 3) for value in row] for row in values]
        trace["texttemplate"] = "%{text}"
    written = numbers or values.size <= SMALL
    special = [] if finite.all() else _specials(matrix, x, y, dark, text or {}, written)
    return [trace, *special]


def digits(value: np.floating) -> str:
    """The shortest digits that identify a number among those of its type.

    >>> digits(np.float32(0.05)), digits(np.float32(-2))
    ('0.05', '−2')
    """
    return str(value).removesuffix(".0").replace("-", "−") if np.isfinite(value) else write(value)


def _place(matrix: Matrix, x: str, y: str) -> dict:
    """Kind, axes and coordinates: positions in the tensor, also where a cell stands for a block."""
    down, across = matrix.block
    place = {"type": "heatmap", "xaxis": x, "yaxis": y, "showscale": False, "hoverongaps": False}
    place |= {"name": markup.safe(matrix.symbol)}
    if matrix.where is None:
        return place
    grid = {"x0": (across - 1) / 2, "dx": across, "y0": (down - 1) / 2, "dy": down}
    return place | grid | {"customdata": matrix.where}


def hover(matrix: Matrix, number: str, text: Mapping[str, str]) -> str:
    """The hover text: name, index and number, then the names of row and column."""
    pooled = matrix.where is not None
    i, j = ("%{x:d}", "%{y:d}") if matrix.turned else ("%{y:d}", "%{x:d}")
    i, j = ("%{customdata[0]}", "%{customdata[1]}") if pooled else (i, j)
    index = ", ".join([*map(str, matrix.lead), i, "…" if matrix.flat else j])
    lines = [f"<b>{markup.symbol(matrix.symbol)}</b>[{index}] = {number}"]
    if pooled:
        down, across = matrix.block
        said = text.get("pooled", POOLED)
        said = said.replace("{rows}", str(down)).replace("{cols}", str(across))
        lines.append(markup.safe(said))
    elif matrix.row_names or matrix.col_names:
        lines.append("%{y} · %{x}")
    return "<br>".join(lines) + "<extra></extra>"


def _specials(matrix: Matrix, x, y, dark: bool, text, written: bool) -> list[dict]:
    """A trace for each kind of number that no colour scale holds, and the hatching of −∞."""
    values, colours = matrix.values, theme.palette(dark)
    made = []
    if 0 < np.isneginf(values).sum() <= HATCHED:
        made.append(_hatching(matrix, x, y, dark))
    for name, hit, ground, ink in (
        ("−∞", np.isneginf(values), theme.hidden(dark), colours.ink),
        ("NaN", np.isnan(values), colours.nan, "#ffffff"),
        ("∞", np.isposinf(values), colours.positive, colours.ground),
    ):
        if hit.any():
            made.append(_place(matrix, x, y) | _mark(name, hit, ground, ink, written))
            made[-1]["hovertemplate"] = hover(matrix, name, text)
    return sorted(made, key=lambda trace: trace["type"] == "scatter")


def _mark(name: str, hit: np.ndarray, ground: str, ink: str, written: bool) -> dict:
    mark = {
        "z": np.where(hit, np.float32(0), np.float32(np.nan)),
        "zmin": 0,
        "zmax": 1,
        "autocolorscale": False,
        "colorscale": [[0, ground], [1, ground]],
        "name": name,
    }
    if written:
        mark |= {"text": np.where(hit, name, "").tolist(), "texttemplate": "%{text}"}
        mark["textfont"] = {"color": ink}
    return mark


def _hatching(matrix: Matrix, x: str, y: str, dark: bool) -> dict:
    """Strokes over every cell of −∞, as one line with gaps, which costs one element."""
    cells = np.argwhere(np.isneginf(matrix.values)) * np.array(matrix.block) - 0.5
    strokes = np.array(STROKES if len(cells) <= FEW else STROKES[1:2], np.float32)
    down, across = matrix.block
    # (cells, strokes, start · end · gap)
    xs = cells[:, 1, None, None] + across * strokes[None, :, [0, 1, 1]]
    ys = cells[:, 0, None, None] + down * strokes[None, :, [1, 0, 0]]
    xs[..., 2] = np.nan
    colours = theme.palette(dark)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "−∞",
        "xaxis": x,
        "yaxis": y,
        "x": xs.ravel().astype(np.float32),
        "y": ys.ravel().astype(np.float32),
        "line": {"color": theme.mix(colours.raised, colours.ink, 0.35), "width": 1},
        "hoverinfo": "skip",
        "showlegend": False,
    }
