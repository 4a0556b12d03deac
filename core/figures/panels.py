"""Pieces that charts of several panels share: the legend, a heading per panel, one line."""

from __future__ import annotations

from collections.abc import Sequence

from core.figures import markup, theme

# At the bottom: at the top the buttons of a chart would lie over it on a phone.
LEGEND = {"orientation": "h", "x": 0, "yref": "container", "y": 0, "yanchor": "bottom"}
TOP = 40  # pixels above the drawing, for those buttons
UNIT = (-0.03, 1.03)  # a range for shares, so that lines at 0 and 1 are seen whole


def heading(text: str, y: float) -> dict:
    """What a panel shows, above it: a title along the axis would take width on a phone."""
    place = {"xref": "paper", "yref": "paper", "x": 0, "y": y, "xanchor": "left"}
    return place | {"text": markup.safe(text), "yanchor": "bottom", "showarrow": False}


def line(
    place: int, x: Sequence[float], y: Sequence[float | None], name: str, *, dark: bool = False
) -> dict:
    """A line that differs from its neighbours in colour, dash and marker.

    >>> line(1, [0, 1], [2, 3], "a")["line"]["dash"]
    'dash'
    """
    colours = theme.palette(dark).series
    turn, i = divmod(place, len(colours))
    dash = theme.DASHES[(i + 3 * turn) % len(theme.DASHES)]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": markup.safe(name),
        "x": list(x),
        "y": list(y),
        "line": {"color": colours[i], "dash": dash, "width": 2},
        "marker": {"symbol": theme.MARKERS[i], "size": 6},
        "hovertemplate": "%{x:.4~g}: %{y:.4~g}<extra>" + markup.safe(name) + "</extra>",
    }


def upright(at: float, *, x: str = "x", y: str = "y domain", dark: bool = False) -> dict:
    """A dotted vertical from the bottom to the top of a panel."""
    ink = {"color": theme.palette(dark).muted, "dash": "dot", "width": 1.5}
    return {"type": "line", "xref": x, "yref": y, "x0": at, "x1": at, "y0": 0, "y1": 1, "line": ink}
