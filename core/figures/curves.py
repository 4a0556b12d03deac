"""Charts of plain numbers: histograms, curves, bars, points and arrows in two or three dimensions.

Every word comes from the caller. Series differ in colour and in dash or marker, so that colour is
never the only difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from core.figures import markup, theme
from core.figures.heatmap import figure

HEIGHT = 340
WIDE = 24  # characters under a bar


@dataclass(frozen=True)
class Series:
    """Named numbers: y over x. `error`: half the height of a bar around each y, or None."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    error: Sequence[float] | None = None


def curves(
    series: Sequence[Series],
    *,
    x_title: str = "",
    y_title: str = "",
    log_x: bool = False,
    log_y: bool = False,
    marks: Mapping[str, float] | None = None,
    points: bool | None = None,
    dark: bool = False,
    height: int = HEIGHT,
) -> go.Figure:
    """Lines over one pair of axes. `marks`: named places on the x axis, drawn as upright lines.
    `points`: markers on the lines (default: where a series has at most 30).

    >>> drawn = curves([Series("d_k", [1, 2], [3.0, 4.0])], x_title="n", log_x=True)
    >>> drawn.data[0].y.tolist(), drawn.layout.xaxis.type
    ([3.0, 4.0], 'log')
    """
    traces = [_line(place, one, points, dark) for place, one in enumerate(series)]
    layout = _layout(x_title, y_title, height, legend=len(traces) > 1)
    layout["xaxis"] |= {"type": "log" if log_x else "linear"}
    layout["yaxis"] |= {"type": "log" if log_y else "linear"}
    layout |= _marks(marks or {}, dark, log_x)
    return figure(traces, layout, dark)


def histogram(
    values: Mapping[str, Sequence[float]],
    *,
    bins: int | Sequence[float] = 40,
    density: bool = True,
    theory: Sequence[Series] = (),
    x_title: str = "",
    y_title: str = "",
    dark: bool = False,
    height: int = HEIGHT,
) -> go.Figure:
    """How named samples are distributed, over common bins, with curves of what theory says.

    `bins`: a number, or the edges. `density`: bars of area 1, comparable to a density; else counts.
    Numbers that are not finite are left out.

    >>> drawn = histogram({"q·k": [0.0, 0.0, 1.0]}, bins=[0.0, 0.5, 1.5], density=False)
    >>> drawn.data[0].y.tolist(), drawn.data[0].width.tolist()
    ([2.0, 1.0], [0.5, 1.0])
    """
    samples = {name: _finite(sample) for name, sample in values.items()}
    together = np.concatenate([*samples.values(), np.zeros(0)])
    edges = np.histogram_bin_edges(together if together.size else [0.0], bins)
    traces = []
    for place, (name, sample) in enumerate(samples.items()):
        heights = np.histogram(sample, edges)[0].astype(float)
        if density and sample.size:
            heights /= sample.size * np.diff(edges)
        traces.append(_steps(place, name, edges, heights, dark))
    count = len(traces)
    traces += [_line(count + place, one, False, dark) for place, one in enumerate(theory)]
    layout = _layout(x_title, y_title, height, legend=len(traces) > 1)
    layout |= {"barmode": "overlay", "bargap": 0}
    layout["yaxis"]["rangemode"] = "tozero"
    return figure(traces, layout, dark)


def bars(
    names: Sequence[str],
    series: Mapping[str, Sequence[float]],
    *,
    x_title: str = "",
    y_title: str = "",
    stacked: bool = False,
    sideways: bool = False,
    log: bool = False,
    colours: Sequence[str] | None = None,
    written: bool = False,
    dark: bool = False,
    height: int = HEIGHT,
) -> go.Figure:
    """Bars for each name, one per series: side by side, or stacked. Equal names stay apart.

    `sideways`: names down the left side, the first on top. `colours`: one per series instead of the
    theme's (a dimension's own). `written`: the number at the end of its bar.

    >>> drawn = bars(["the", "the"], {"weight": [0.25, 0.75]})
    >>> drawn.data[0].x.tolist(), drawn.data[0].y.tolist(), drawn.layout.xaxis.ticktext
    ([0, 1], [0.25, 0.75], ('the', 'the'))
    """
    places = np.arange(len(names))
    traces = []
    for place, (name, numbers) in enumerate(series.items()):
        along, up = places, np.asarray(numbers, dtype=float)
        trace = {"type": "bar", "name": markup.safe(name), "orientation": "h" if sideways else "v"}
        trace |= {"x": up, "y": along} if sideways else {"x": along, "y": up}
        value = "%{x:.6~g}" if sideways else "%{y:.6~g}"
        label = "%{y}" if sideways else "%{x}"
        trace |= {"hovertemplate": f"{label}: {value}<extra>{_extra(name, series)}</extra>"}
        trace["marker"] = _fill(place, colours, dark)
        if written:
            trace |= {"texttemplate": value.replace(".6~g", ".3~g"), "textposition": "auto"}
        traces.append(trace)
    layout = _layout(x_title, y_title, height, legend=len(traces) > 1)
    layout |= {"barmode": "stack" if stacked else "group", "bargap": 0.25}
    side, other = ("yaxis", "xaxis") if sideways else ("xaxis", "yaxis")
    layout[side] |= {"tickvals": places.tolist(), "ticktext": markup.labels(names, WIDE)}
    layout[side] |= {"showgrid": False, "zeroline": False}
    layout[side] |= {"range": [len(names) - 0.5, -0.5]} if sideways else {}
    layout[other]["type"] = "log" if log else "linear"
    return figure(traces, layout, dark)


@dataclass(frozen=True)
class Points:
    """Named points in a space of two or three dimensions.

    `at`: (n, 2) or (n, 3). `labels`: one per point. `arrows`: drawn as vectors, from `start`
    (default: the origin). `joined`: a line through them in order.
    """

    name: str
    at: Sequence[Sequence[float]]
    labels: Sequence[str] = ()
    arrows: bool = False
    joined: bool = False
    start: Sequence[Sequence[float]] | None = None


def space(
    groups: Sequence[Points],
    *,
    titles: Sequence[str] = (),
    dark: bool = False,
    height: int = 460,
) -> go.Figure:
    """Points and arrows in a plane or a space, one colour and marker per group; axes to one scale.

    `titles`: names of the axes. Whether two or three dimensions, the groups' points say.

    >>> drawn = space([Points("Q", [[1.0, 2.0]], ["cat"], arrows=True)])
    >>> drawn.data[-1].x.tolist(), drawn.data[-1].text, drawn.layout.yaxis.scaleanchor
    ([1.0], ('cat',), 'x')
    """
    deep = any(np.asarray(group.at).shape[-1] == 3 for group in groups)
    traces, names = [], []
    for place, group in enumerate(groups):
        at = np.asarray(group.at, dtype=float).reshape(-1, 3 if deep else 2)
        if group.arrows:
            traces.append(_shafts(place, group, at, deep, dark))
        traces.append(_points(place, group, at, deep, dark))
        names += _names(place, group, at, dark) if deep and group.labels else []
    titles = [markup.safe(title) for title in [*titles, "", "", ""][:3]]
    layout = _layout("", "", height, legend=len(groups) > 1)
    if deep:
        sides = zip("xyz", titles, strict=True)
        scene = {f"{side}axis": {"title": {"text": title}} for side, title in sides}
        camera = {"eye": {"x": 1.6, "y": 1.6, "z": 1.0}}
        scene |= {"aspectmode": "data", "camera": camera, "annotations": names}
        layout["scene"] = scene
        return figure(traces, layout, dark)
    layout["xaxis"]["title"], layout["yaxis"]["title"] = ({"text": t} for t in titles[:2])
    layout["yaxis"] |= {"scaleanchor": "x", "scaleratio": 1}
    return figure(traces, layout, dark)


# --- traces -----------------------------------------------------------------------------------


def _finite(sample) -> np.ndarray:
    sample = np.asarray(sample, dtype=float).ravel()
    return sample[np.isfinite(sample)]


def _colour(place: int, dark: bool) -> str:
    series = theme.palette(dark).series
    return series[place % len(series)]


def _extra(name: str, series) -> str:
    return markup.safe(name) if len(series) > 1 else ""


def _line(place: int, one: Series, points: bool | None, dark: bool) -> dict:
    colour = _colour(place, dark)
    pointed = len(one.x) <= 30 if points is None else points
    trace = {
        "type": "scatter",
        "mode": "lines+markers" if pointed else "lines",
        "name": markup.safe(one.name),
        "x": np.asarray(one.x, dtype=float),
        "y": np.asarray(one.y, dtype=float),
        "line": {"color": colour, "dash": theme.DASHES[place % len(theme.DASHES)], "width": 2.5},
        "marker": {"symbol": theme.MARKERS[place % len(theme.MARKERS)], "size": 7},
        "hovertemplate": f"%{{x:.6~g}}: %{{y:.6~g}}<extra>{markup.safe(one.name)}</extra>",
    }
    if one.error is not None:
        trace["error_y"] = {"array": np.asarray(one.error, dtype=float), "thickness": 1}
    return trace


def _steps(place: int, name: str, edges: np.ndarray, heights: np.ndarray, dark: bool) -> dict:
    """Bars over bins, which may differ in width."""
    colour = _colour(place, dark)
    return {
        "type": "bar",
        "name": markup.safe(name),
        "x": (edges[:-1] + edges[1:]) / 2,
        "y": heights,
        "width": np.diff(edges),
        "customdata": np.stack([edges[:-1], edges[1:]], axis=1),
        "marker": {"color": colour, "opacity": 0.55, "line": {"color": colour, "width": 1}},
        "hovertemplate": "%{customdata[0]:.4~g} … %{customdata[1]:.4~g}: %{y:.4~g}"
        f"<extra>{markup.safe(name)}</extra>",
    }


def _fill(place: int, colours: Sequence[str] | None, dark: bool) -> dict:
    """Solid for the first series, then a pattern each, in case the colours look alike."""
    colour = colours[place % len(colours)] if colours else _colour(place, dark)
    shapes = ("", "/", ".", "x", "-", "+")
    return {
        "color": colour,
        "pattern": {
            "shape": shapes[place % len(shapes)],
            "fgcolor": theme.palette(dark).ground,
            "size": 6,
            "solidity": 0.25,
            "fillmode": "overlay",
        },
    }


def _coordinates(at: np.ndarray) -> dict:
    return {axis: at[:, i] for i, axis in zip(range(at.shape[1]), "xyz", strict=False)}


def _points(place: int, group: Points, at: np.ndarray, deep: bool, dark: bool) -> dict:
    colour = _colour(place, dark)
    labels = markup.labels(group.labels)
    # In the plane the arrow's head is the point: only its name and its hover text are added.
    headed = group.arrows and not deep
    mode = "markers" + ("+text" if labels and not deep else "") + ("+lines" if group.joined else "")
    index = ", ".join(f"%{{{axis}:.4~g}}" for axis in "xyz"[: at.shape[1]])
    symbols = ("circle", "square", "diamond", "cross", "x", "circle-open")
    return _coordinates(at) | {
        "type": "scatter3d" if deep else "scatter",
        "mode": mode,
        "name": markup.safe(group.name),
        "text": labels,
        "textposition": _sides(at) if headed else "top center",
        "marker": {"color": colour, "size": 5 if deep else 9, "opacity": 0 if headed else 1,
                   "symbol": symbols[place % len(symbols)]},
        "legendgroup": str(place),
        "showlegend": not headed,
        "line": {"color": colour, "dash": theme.DASHES[place % 4]},
        "textfont": {"color": theme.palette(dark).ink},
        "hovertemplate": f"{'%{text} ' if labels else ''}({index})"
        f"<extra>{markup.safe(group.name)}</extra>",
    }  # fmt: skip


def _shafts(place: int, group: Points, at: np.ndarray, deep: bool, dark: bool) -> dict:
    """The lines of arrows, with gaps between; in the plane each ends in a head."""
    start = np.zeros_like(at) if group.start is None else np.asarray(group.start, dtype=float)
    gap = np.full_like(at, np.nan)
    ends = np.stack([start, at, gap], axis=1).reshape(-1, at.shape[1])
    trace = _coordinates(ends) | {
        "type": "scatter3d" if deep else "scatter",
        "mode": "lines",
        "line": {"color": _colour(place, dark), "width": 4 if deep else 2},
        "hoverinfo": "skip",
        "legendgroup": str(place),
        "showlegend": not deep,
        "name": markup.safe(group.name),
    }
    if deep:
        return trace
    heads = {"symbol": "arrow", "angleref": "previous", "color": _colour(place, dark)}
    heads |= {"size": np.tile([0, 14, 0], len(at)), "opacity": 1, "line": {"width": 0}}
    return trace | {"mode": "lines+markers", "marker": heads}


def _sides(at: np.ndarray) -> list[str]:
    """Names beyond the heads of arrows."""
    return ["top center" if y >= 0 else "bottom center" for y in at[:, 1]]


def _names(place: int, group: Points, at: np.ndarray, dark: bool) -> list[dict]:
    """Names in three dimensions as annotations: Plotly's own text there is cut by the walls."""
    note = {"showarrow": False, "yshift": 12, "font": {"color": _colour(place, dark), "size": 13}}
    return [
        note | {"text": label, "x": x, "y": y, "z": z}
        for label, (x, y, z) in zip(markup.labels(group.labels), at.tolist(), strict=True)
    ]


# --- layout -----------------------------------------------------------------------------------


def _layout(x_title: str, y_title: str, height: int, legend: bool) -> dict:
    return {
        "xaxis": {"title": {"text": markup.safe(x_title)}},
        "yaxis": {"title": {"text": markup.safe(y_title)}},
        "height": height,
        "showlegend": legend,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "margin": {"l": 8, "r": 16, "t": 16, "b": 8},
    }


def _marks(marks: Mapping[str, float], dark: bool, log: bool) -> dict:
    """Upright lines over the whole height, each with its name at the top."""
    colours = theme.palette(dark)
    line = {"color": colours.muted, "width": 1.5, "dash": "dot"}
    shapes, notes = [], []
    for name, x in marks.items():
        shapes.append({"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper",
                       "line": line})  # fmt: skip
        # An annotation on a logarithmic axis stands at the exponent.
        place = float(np.log10(x)) if log else x
        notes.append({"text": markup.safe(name), "x": place, "y": 1, "yref": "paper",
                      "yanchor": "bottom", "showarrow": False, "font": {"size": 11}})  # fmt: skip
    return {"shapes": shapes, "annotations": notes} if marks else {}
