"""All heads side by side on one scale: what each of them looks at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from core.figures import markup, theme
from core.figures.heatmap import axes, colour_bar, figure, layers
from core.figures.matrices import Matrix, plain

BUDGET = 60_000  # drawn cells of the whole gallery
LEAST, MOST = 576, 16_384  # drawn cells of one head, whatever the budget says
SHORT = 10  # characters of a name
NAMED = 12  # positions along a side up to which their names are written
TITLE = 26  # pixels over a head for its title
GAP = 0.02  # between heads, of the width


def head_gallery(
    heads,
    *,
    titles: Sequence[str] = (),
    rows: Sequence[str] = (),
    cols: Sequence[str] = (),
    row_title: str = "",
    col_title: str = "",
    symbol: str = "weights",
    lead: Sequence[int] = (),
    unit: bool = True,
    columns: int = 4,
    current: int | None = None,
    text: Mapping[str, str] | None = None,
    dark: bool = False,
    slot: int = 220,
) -> go.Figure:
    """Matrices (h, S, T) as small heatmaps with one colour bar, query 0 on top.

    `titles`: one per head (default: its number from 0, as in an index). `rows`, `cols`: names of
    queries and keys; `row_title`, `col_title`: what they are. `lead`: the index in front of the
    head's (the sample), for hovering. `unit`: on a scale from 0 to 1, else around 0 up to the
    largest of all. `current`: the head to mark. `text`: "pooled". `slot`: pixels for one row of
    heads without its names, `columns`: heads in it.

    >>> import torch
    >>> gallery = head_gallery(torch.full((2, 3, 3), 1 / 3), titles=["a", "b"])
    >>> [trace.z.shape for trace in gallery.data], gallery.layout.coloraxis.cmax
    ([(3, 3), (3, 3)], 1)
    """
    most = min(MOST, max(LEAST, BUDGET // max(len(heads), 1)))
    names = {"rows": markup.labels(rows, SHORT), "cols": markup.labels(cols, SHORT)}
    matrices = [
        plain(head, most, symbol=symbol, lead=(*lead, place), unit=unit, **names)
        for place, head in enumerate(heads)
    ]
    largest = max((matrix.largest for matrix in matrices), default=1.0)
    below = _room(names["cols"])
    grid = _Grid(columns, -(-len(matrices) // columns), slot + below, below)
    traces, layout, notes = [], {}, []
    for place, matrix in enumerate(matrices):
        number = str(place + 1) if place else ""
        x, y = f"x{number}", f"y{number}"
        drawn = layers(matrix, x=x, y=y, dark=dark, text=text, largest=largest, spelt=False)
        drawn[0]["coloraxis"] = "coloraxis"
        traces += drawn
        pair = _placed(matrix, x, y, grid, place)
        layout[f"xaxis{number}"], layout[f"yaxis{number}"] = pair
        title = titles[place] if place < len(titles) else str(place)
        notes.append(_title(title, grid.spot(place), place == current, dark))
    layout |= {
        "annotations": notes + _sides(row_title, col_title),
        "coloraxis": _scale(unit, largest, dark),
        "height": grid.lines * grid.slot + 84,
        "margin": {"l": 16 + _room(names["rows"]), "r": 12, "t": 4, "b": 80},
        "showlegend": False,
        "dragmode": False,
    }
    return figure(traces, layout, dark)


def _room(names: Sequence[str]) -> int:
    """Pixels that names beside a matrix need; none where they are too many to be written."""
    if not names or len(names) > NAMED:
        return 0
    return 6 + max(markup.width(name) for name in names)


class _Grid:
    """Where the heads stand, as shares of the drawing."""

    def __init__(self, columns: int, lines: int, slot: int, names: int):
        self.columns, self.lines, self.slot, self.names = columns, lines, slot, names

    def spot(self, place: int) -> tuple[float, float, float, float]:
        """Left, right, low and top of a head's matrix."""
        row, column = divmod(place, self.columns)
        wide, whole = (1 + GAP) / self.columns, self.lines * self.slot
        top, low = row * self.slot + TITLE, (row + 1) * self.slot - 4 - self.names
        left = column * wide
        return left, min(1.0, left + wide - GAP), max(0.0, 1 - low / whole), 1 - top / whole


def _placed(matrix: Matrix, x: str, y: str, grid: _Grid, place: int) -> tuple[dict, dict]:
    left, right, low, top = grid.spot(place)
    named = max(matrix.size) <= NAMED
    across, down = axes(matrix, x, y, ticks=named)
    fitted = {"constrain": "domain", "automargin": False, "fixedrange": True}
    fitted |= {"showline": True, "mirror": True, "tickfont": {"size": 11}}
    across |= fitted | {"domain": [left, right], "constraintoward": "left", "tickangle": -90}
    down |= fitted | {"domain": [low, top], "constraintoward": "top"}
    across["showticklabels"] &= bool(matrix.col_names)
    # Queries once, at the left edge: every head has the same.
    down["showticklabels"] &= bool(matrix.row_names) and place % grid.columns == 0
    return across, down


def _title(title: str, spot, marked: bool, dark: bool) -> dict:
    colours = theme.palette(dark)
    shown = markup.safe(title, 28)
    return {
        "text": f"<b>▸ {shown}</b>" if marked else shown,
        "x": spot[0],
        "y": spot[3],
        "xref": "paper",
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 12, "color": colours.primary if marked else colours.ink},
    }


def _sides(row_title: str, col_title: str) -> list[dict]:
    """What runs down and what runs across, once for all heads."""
    said = [f"{sign} {markup.safe(t)}" for sign, t in zip("↓→", (row_title, col_title), strict=True)
            if t]  # fmt: skip
    note = {"text": " &nbsp; ".join(said), "x": 0, "xref": "paper", "xanchor": "left"}
    note |= {"y": 0, "yref": "paper", "yanchor": "top", "yshift": -8, "showarrow": False}
    return [note] if said else []


def _scale(unit: bool, largest: float, dark: bool) -> dict:
    low, high = (0, 1) if unit else (-largest, largest)
    return {
        "cmin": low,
        "cmax": high,
        "colorscale": theme.unit(dark) if unit else theme.signed(dark),
        "colorbar": colour_bar({"zmin": low, "zmax": high}) | {"x": 0.5, "ypad": 30},
    }
