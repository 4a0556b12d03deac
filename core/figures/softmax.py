"""Figures of the softmax page: bars of the intermediates, shares by temperature, one slope."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from core.experiments.softmax import STEEPEST, Slope
from core.figures import panels, theme
from core.figures.curves import Series, curves
from core.figures.heatmap import figure
from core.numbers import write

DOMAINS = ((0.72, 0.97), (0.36, 0.61), (0.0, 0.25))  # from top to bottom
TICKS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)


def bars(
    rows: Sequence[Sequence[float]], *, titles: Sequence[str], names: Sequence[str], dark=False
) -> go.Figure:
    """Three rows of bars, one above the other: scores (signed), exponentials, shares.

    `rows`: three lists of equal length. `titles`: of the rows. `names`: of the columns.
    """
    colours = theme.palette(dark)
    traces, layout = [], {"height": 430, "showlegend": False, "bargap": 0.3, "annotations": []}
    places = list(range(len(names)))
    for i, (values, title, domain) in enumerate(zip(rows, titles, DOMAINS, strict=True)):
        axis = "" if i == 0 else str(i + 1)
        fills = [colours.positive if v >= 0 else colours.negative for v in values]
        traces.append(
            {
                "type": "bar",
                "x": places,
                "y": list(values),
                "xaxis": "x",
                "yaxis": f"y{axis}",
                "marker": {"color": fills if i == 0 else colours.share},
                "text": [write(v, 3) for v in values],
                "textposition": "outside",
                "cliponaxis": False,
                "customdata": list(names),
                "hovertemplate": "%{customdata}: %{y:.6~g}<extra></extra>",
            }
        )
        layout[f"yaxis{axis}"] = _bar_axis(values, domain, unit=i > 0)
        layout["annotations"].append(panels.heading(title, domain[1]))
    layout["xaxis"] = {"tickvals": places, "ticktext": list(names), "anchor": "y3"}
    layout["xaxis"] |= {"showgrid": False, "range": [-0.6, len(names) - 0.4]}
    return figure(traces, layout, dark)


def _bar_axis(values: Sequence[float], domain, unit: bool) -> dict:
    """Room above (and below) the bars for their numbers; exponentials and shares end at 1."""
    low, high = (0.0, 1.0) if unit else (min(0.0, *values), max(0.0, *values))
    room = 0.3 * ((high - low) or 1.0)
    ends = [low - room * (low < 0), high + room * (high > 0)]
    return {"domain": list(domain), "range": ends, "nticks": 4}


def temperature(
    along: Sequence[float],
    shares: Sequence[Sequence[float]],
    *,
    at: float,
    names: Sequence[str],
    title: str,
    dark: bool = False,
) -> go.Figure:
    """The share of each score against temperature (log axis), with the one in use marked."""
    lines = [Series(name, along, share) for name, share in zip(names, shares, strict=True)]
    marks = {write(at): at}
    drawn = curves(lines, x_title=title, log_x=True, marks=marks, points=False, dark=dark)
    for line in drawn.data[len(theme.DASHES) :]:  # colours begin again: let the dashes differ
        line.line.dash = theme.DASHES[(theme.DASHES.index(line.line.dash) + 3) % len(theme.DASHES)]
    ticks = {"tickvals": TICKS, "ticktext": [write(tick) for tick in TICKS]}
    return drawn.update_layout(
        legend=panels.LEGEND, yaxis_range=panels.UNIT, margin_t=panels.TOP, xaxis=ticks
    )


def slope(
    found: Slope, *, at: tuple[float, float], names: Sequence[str], title: str, dark: bool = False
) -> go.Figure:
    """Share and derivative as one input moves; `at`: where it and its share stand now.

    `names`: of the share, its derivative, the bound 1/4, and where it stands (drawn if in sight).
    `title`: of the x axis.
    """
    ends = (found.moved[0], found.moved[-1])
    lines = [
        Series(names[0], found.moved, found.share),
        Series(names[1], found.moved, found.derivative),
        Series(names[2], ends, (STEEPEST, STEEPEST)),
        Series(names[3], at[:1], at[1:]),
    ]
    seen = ends[0] <= at[0] <= ends[1]  # else the chart would be stretched to reach it
    drawn = curves(lines[: 4 if seen else 3], x_title=title, dark=dark)
    drawn.data[2].mode = "lines"
    for point in drawn.data[3:]:
        point.update(mode="markers", marker_size=12)
    return drawn.update_layout(legend=panels.LEGEND, yaxis_range=panels.UNIT, margin_t=panels.TOP)
