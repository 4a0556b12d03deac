"""Figures of the scaling study: histograms against theory, weights by rank, curves against d_k."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import plotly.graph_objects as go

from core.experiments.scaling import Moments, Point, Sample, Spread, normal_density
from core.figures import markup, panels, theme
from core.figures.curves import Series, curves
from core.figures.heatmap import figure
from core.numbers import write

LABELS = 4  # at most, along a logarithmic axis
SHORT = 1.5  # decades


def dot_products(
    sample: Sample, *, names: Sequence[str], same_axis: bool = True, dark: bool = False
) -> go.Figure:
    """The scores before (above) and after the division (below), with the curves of theory.

    `names`: of the two panels, the measured bars, the predicted and the claimed curve. The claimed
    one is drawn only where it differs. Dashed verticals stand at three predicted deviations.
    """
    before, after, bars, predicted, claimed = map(markup.safe, names)
    traces = [
        *_histogram(sample.raw, "", (bars, predicted, claimed), dark),
        *_histogram(sample.scaled, "2", (bars, predicted, claimed), dark),
    ]
    reach = [sample.raw.edges[0], sample.raw.edges[-1]]
    layout = {
        "height": 470,
        "margin": {"t": panels.TOP},
        "bargap": 0,
        "legend": panels.LEGEND,
        "xaxis": {"anchor": "y", "title": {"text": before}, "range": reach},
        "xaxis2": {"anchor": "y2", "title": {"text": after}},
        "yaxis": {"domain": [0.6, 1], "rangemode": "tozero"},
        "yaxis2": {"domain": [0, 0.4], "anchor": "x2", "rangemode": "tozero"},
        "shapes": _three(sample.raw.predicted, "", dark)
        + _three(sample.scaled.predicted, "2", dark),
    }
    if same_axis:
        layout["xaxis2"] |= {"range": reach, "matches": "x"}
    return figure(traces, layout, dark)


def _histogram(spread: Spread, panel: str, names: Sequence[str], dark: bool) -> list[dict]:
    colours, edges = theme.palette(dark), spread.edges
    bins = list(itertools.pairwise(edges))
    at = {"xaxis": f"x{panel}", "yaxis": f"y{panel}", "showlegend": not panel}
    hover = "%{x:.4~g}: %{y:.4~f}<extra>" + names[0] + "</extra>"
    bars = at | {
        "type": "bar",
        "name": names[0],
        "legendgroup": names[0],
        "x": [(a + b) / 2 for a, b in bins],
        "y": list(spread.density),
        "width": [b - a for a, b in bins],
        "marker": {"color": theme.mix(colours.ground, colours.series[0], 0.5)},
        "hovertemplate": hover,
    }
    lines = [bars, at | _bell(spread.predicted, names[1], colours.series[1], "solid")]
    if spread.predicted != spread.claimed:
        lines.append(at | _bell(spread.claimed, names[2], colours.series[3], "dash"))
    return lines


def _bell(moments: Moments, name: str, colour: str, dash: str) -> dict:
    x, y = normal_density(moments)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "legendgroup": name,
        "x": list(x),
        "y": list(y),
        "line": {"color": colour, "width": 2, "dash": dash},
        "hoverinfo": "skip",
    }


def _three(moments: Moments, panel: str, dark: bool) -> list[dict]:
    """Verticals three predicted standard deviations to each side of the mean, labelled."""
    label = {"textposition": "end", "textangle": 0, "yanchor": "top"}
    label |= {"font": {"color": theme.palette(dark).muted, "size": 12}}
    made = []
    for sign, anchor in ((-1, "right"), (1, "left")):
        at = moments.mean + sign * 3 * moments.deviation
        mark = panels.upright(at, x=f"x{panel}", y=f"y{panel} domain", dark=dark)
        made.append(mark | {"label": label | {"text": write(at, 3), "xanchor": anchor}})
    return made


def by_rank(
    rows: Sequence[Sequence[float]], *, names: Sequence[str], axes: Sequence[str], dark=False
) -> go.Figure:
    """Weights of one row, largest first, one line per divisor. `axes`: titles of x and y."""
    ranks = range(1, len(rows[0]) + 1)
    lines = [Series(name, ranks, row) for name, row in zip(names, rows, strict=True)]
    drawn = curves(lines, x_title=axes[0], y_title=axes[1], points=True, dark=dark)
    return drawn.update_layout(legend=panels.LEGEND, yaxis_range=panels.UNIT, margin_t=panels.TOP)


def against_width(
    points: Sequence[tuple[Point, ...]],
    quantities: Sequence[str],
    *,
    statistic: str = "median",
    names: Sequence[str],
    titles: Sequence[str],
    log: bool = False,
    levels: Sequence[float | None] = (None, None),
    chosen: int | None = None,
    dark: bool = False,
) -> go.Figure:
    """Two quantities of softmax against d_k, one above the other, one line per divisor.

    `quantities`: fields of Point. `titles`: of the two panels, and of the x axis. `log`: the y axes
    too; zeros are then left out. `levels`: a dotted horizontal per panel. `chosen`: the d_k in use.
    """
    traces, y_axes = [], []
    for panel, quantity in zip(("", "2"), quantities, strict=True):
        measured = [[getattr(getattr(p, quantity), statistic) for p in each] for each in points]
        for i, name in enumerate(names):
            values = [row[i] if row[i] > 0 or not log else None for row in measured]
            trace = panels.line(i, [each[i].d_k for each in points], values, name, dark=dark)
            at = {"xaxis": f"x{panel}", "yaxis": f"y{panel}", "showlegend": not panel}
            traces.append(trace | at | {"mode": "lines+markers", "legendgroup": name})
        y_axes.append(_decades(itertools.chain(*measured)) if log else {"rangemode": "tozero"})
    ticks = [4**n for n in range(6)]
    x_axis = {"type": "log", "tickvals": ticks, "ticktext": [f"{n:,}" for n in ticks]}
    x_axis |= {"range": [-0.1, 3.12]}
    layout = {
        "height": 500,
        "margin": {"t": panels.TOP},
        "legend": panels.LEGEND,
        "xaxis": x_axis | {"anchor": "y", "matches": "x2", "showticklabels": False},
        "xaxis2": x_axis | {"anchor": "y2", "title": {"text": markup.safe(titles[2])}},
        "yaxis": y_axes[0] | {"domain": [0.56, 0.95]},
        "yaxis2": y_axes[1] | {"domain": [0, 0.39], "anchor": "x2"},
        "annotations": [panels.heading(titles[0], 0.95), panels.heading(titles[1], 0.39)],
        "shapes": [*_levels(levels, dark), *_chosen(chosen, dark)],
    }
    return figure(traces, layout, dark)


def _decades(values: Iterable[float]) -> dict:
    """A logarithmic axis with few labels: powers of ten, or 1, 2, 5 where it is short."""
    shown = [value for value in values if value > 0] or [1.0]
    low, high = math.log10(min(shown)), math.log10(max(shown))
    axis = {"type": "log", "exponentformat": "power"}
    if high - low > SHORT:
        return axis | {"dtick": max(1, math.ceil((high - low) / LABELS))}
    places = [n * 10.0**e for e in range(math.floor(low), math.ceil(high) + 1) for n in (1, 2, 5)]
    return axis | {"tickvals": places, "ticktext": [write(place) for place in places]}


def _levels(levels: Sequence[float | None], dark: bool) -> list[dict]:
    line = {"color": theme.palette(dark).muted, "dash": "dot", "width": 1.5}
    return [
        {"type": "line", "xref": "paper", "yref": f"y{panel}", "x0": 0, "x1": 1, "y0": y, "y1": y}
        | {"line": line}
        for panel, y in zip(("", "2"), levels, strict=True)
        if y is not None
    ]


def _chosen(d_k: int | None, dark: bool) -> list[dict]:
    """A faint vertical through both panels at the width in use."""
    if d_k is None:
        return []
    place = {"xref": "x2", "yref": "paper", "x0": d_k, "x1": d_k, "y0": 0, "y1": 0.95}
    return [{"type": "line", "layer": "below", "line": {"color": theme.palette(dark).line}} | place]
