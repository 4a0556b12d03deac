"""The steps of a trace as Plotly frames: one figure with a slider and buttons, for a download.

Each frame shows a step as an equation of matrices. Frames change traces, they cannot add any: three
places, each with a trace for finite numbers and one for every special kind, empty where not needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from core.figures import markup, theme
from core.figures.heatmap import axes, figure, layers
from core.figures.matrices import Matrix, of_trace

PLACES = 3  # matrices of one equation
EXACT = 16_384  # cells of a matrix that is written out whole
MOST = 4096  # drawn cells of a larger one
INKED = 160  # cells up to which numbers are written into them
WIDTH, HEIGHT = 1000, 430  # pixels; the width is what places are worked out for
SIGN, NAMES = 60, 50  # pixels before a matrix, for an operator and for the names of its rows
LARGEST, SMALLEST = 64, 44  # pixels: a cell at most, a side of a matrix at least
LOW, HIGH = 0.2, 0.78  # shares of the height between which matrices stand
TALL = (HIGH - LOW) * (HEIGHT - 24)
PAUSE = 1600  # milliseconds that each step stays while playing
KINDS = ("finite", "−∞", "NaN", "∞", "strokes")
# What a trace keeps from the frame before unless it is said again.
BLANK = {"text": [], "texttemplate": "", "customdata": [], "x0": 0, "dx": 1, "y0": 0, "dy": 1}


@dataclass(frozen=True)
class Equation:
    """Matrices in reading order, the last one being the result, and the sign before each."""

    matrices: tuple[Matrix, ...]
    signs: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]


def step_frames(
    trace,
    pick: Mapping[str, int] | None = None,
    labels: Mapping[str, Sequence[str]] | None = None,
    text: Mapping[str, str] | None = None,
    dark: bool = False,
) -> go.Figure:
    """Every step as a frame named by its place: operands → result, with slider and play button.

    `pick`, `labels` as in `contact_sheet`. `text`: "play", "pause", "pooled".

    >>> import core
    >>> steps = step_frames(core.run(core.AttentionConfig(S=4, H=6, d_k=3)))
    >>> len(steps.frames), steps.frames[2].data[10].z.shape
    (11, (4, 3))
    """
    return figure(*described(trace, pick, labels, text, dark))


def described(trace, pick=None, labels=None, text=None, dark=False):
    """What `step_frames` is made of, as plain data: Plotly takes ten times as long to wrap it."""
    text = text or {}
    matrices = {symbol: drawn(trace, symbol, pick, labels) for symbol in trace}
    made = [equation(step, matrices) for step in trace.steps]
    frames = [_frame(place, shown, text, dark) for place, shown in enumerate(made)]
    layout = frames[0]["layout"] | {
        "height": HEIGHT,
        "margin": {"l": 12, "r": 12, "t": 12, "b": 12},
        "showlegend": False,
        "dragmode": False,
        "sliders": [_slider(trace, dark)],
        "updatemenus": [_buttons(text, dark)],
    }
    return frames[0]["data"], layout, dark, frames


def drawn(trace, symbol: str, pick=None, labels=None) -> tuple[Matrix, tuple[int, ...]]:
    """A tensor as its matrix, whole up to EXACT cells, and its shape."""
    matrix = of_trace(trace, symbol, pick, labels, MOST, whole=EXACT)
    return matrix, trace.shape(symbol)


def equation(step, matrices: Mapping[str, tuple[Matrix, tuple[int, ...]]]) -> Equation:
    """A step's operands and result as matrices, a transposed operand turned.

    >>> import core
    >>> trace = core.run(core.AttentionConfig(S=4, H=6, d_k=3))
    >>> made = equation(trace.steps[7], {symbol: drawn(trace, symbol) for symbol in trace})
    >>> made.signs, [matrix.values.shape for matrix in made.matrices]
    (('', '×', '='), [(4, 3), (3, 4), (4, 4)])
    """
    shown, signs, shapes, sign = [], [], [], []
    for part in _parts(step):
        if "operator" in part:
            sign.append("×" if part["operator"] == "@" else part["operator"])
            continue
        matrix, shape = matrices[part["symbol"]]
        turned = part.get("transpose", False)
        shown.append(matrix.T if turned else matrix)
        shapes.append((*shape[:-2], shape[-1], shape[-2]) if turned else shape)
        signs.append(" ".join(sign))
        sign = []
    return Equation(tuple(shown), tuple(signs), tuple(shapes))


def _parts(step) -> list[dict]:
    result = [{"symbol": step.symbol}]
    if not step.reads:
        return result
    operands = step.op.equation(step.reads)
    leads = operands[-1].get("operator") == "→"  # says already that the result follows
    return [*operands, *([] if leads else [{"operator": "="}]), *result]


# --- one frame --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Span:
    """Where a matrix stands in the figure, as shares of its width and height."""

    left: float
    right: float
    low: float
    high: float

    @property
    def middle(self) -> float:
        return (self.left + self.right) / 2


def _frame(place: int, made: Equation, text, dark: bool) -> dict:
    spans = _spans(made.matrices)
    data, layout = [], {}
    for slot in range(PLACES):
        number = str(slot + 1) if slot else ""
        x, y = f"x{number}", f"y{number}"
        matrix, span = (made.matrices[slot], spans[slot]) if slot < len(spans) else (None, None)
        data += _traces(matrix, x, y, text, dark)
        layout[f"xaxis{number}"], layout[f"yaxis{number}"] = _axes(matrix, x, y, span)
    layout["annotations"] = _titles(made, spans, dark) + _signs(made, spans)
    traces = list(range(len(data)))
    return {"name": str(place), "data": data, "layout": layout, "traces": traces}


def _spans(matrices: Sequence[Matrix]) -> list[Span]:
    """Places of the matrices, with cells of one size where that leaves each of them readable.

    Plotly settles an aspect only once, not frame by frame, so it is worked out here for a figure
    WIDTH pixels wide; on another screen cells become wider or narrower.
    """
    gap = SIGN + (NAMES if any(m.row_names and told(m) for m in matrices) else 0)
    room = WIDTH - gap * len(matrices)
    rows, cols = [m.size[0] for m in matrices], [m.size[1] for m in matrices]
    cell = min(LARGEST, TALL / max(rows), room / sum(cols))
    wide = [max(SMALLEST, cell * n) for n in cols]
    shrink = min(1.0, room / sum(wide))
    left, spans = (WIDTH - sum(wide) * shrink - gap * len(matrices)) / 2, []
    for width, n in zip(wide, rows, strict=True):
        left, right = left + gap, left + gap + width * shrink
        half = max(SMALLEST, cell * n) / TALL * (HIGH - LOW) / 2
        middle = (HIGH + LOW) / 2
        spans.append(Span(left / WIDTH, min(1.0, right / WIDTH), middle - half, middle + half))
        left = right
    return spans


def told(matrix: Matrix) -> bool:
    """Whether names stand at rows and columns: where they are few enough to read."""
    return max(matrix.size) <= 12


def _axes(matrix: Matrix | None, x: str, y: str, span: Span | None) -> tuple[dict, dict]:
    if matrix is None:  # out of the way: an empty place would paint its ground over the others
        corner = {"visible": False, "domain": [0, 0.001]}
        return corner | {"anchor": y}, corner | {"anchor": x}
    across, down = axes(matrix, x, y)
    del down["scaleanchor"], down["scaleratio"]
    shared = {"visible": True, "automargin": False, "fixedrange": True, "tickfont": {"size": 11}}
    shared |= {"showline": True, "mirror": True, "showticklabels": told(matrix)}
    across |= shared | {"domain": [span.left, span.right], "side": "top", "tickangle": -35}
    return across, down | shared | {"domain": [span.low, span.high]}


def _traces(matrix: Matrix | None, x: str, y: str, text, dark: bool) -> list[dict]:
    """One trace per kind of number, invisible where there is none."""
    made = {}
    if matrix is not None:
        numbers = matrix.values.size <= INKED
        finite, *special = layers(matrix, x=x, y=y, dark=dark, text=text, numbers=numbers)
        made = {"finite": finite}
        for trace in special:
            made["strokes" if trace["type"] == "scatter" else trace["name"]] = trace
    return [_filled(made.get(kind), kind, x, y) for kind in KINDS]


def _filled(trace: dict | None, kind: str, x: str, y: str) -> dict:
    base = {"visible": trace is not None, "xaxis": x, "yaxis": y}
    if kind == "strokes":
        return base | (trace or {"type": "scatter", "x": [], "y": []})
    return base | BLANK | (trace or {"type": "heatmap", "z": [[0]], "showscale": False})


def _titles(made: Equation, spans: Sequence[Span], dark: bool) -> list[dict]:
    """Symbol, shape and chosen index over each matrix."""
    muted, titles = theme.palette(dark).muted, []
    for matrix, shape, span in zip(made.matrices, made.shapes, spans, strict=True):
        name = f"<b>{markup.symbol(matrix.symbol, matrix.turned)}</b>"
        at = f" [{', '.join(map(str, matrix.lead))}]" if matrix.lead else ""
        small = f'<span style="font-size:11px;color:{muted}">{markup.shape(shape)}{at}</span>'
        titles.append(_label(f"{name}<br>{small}", span.middle, 1.0, "top"))
    return titles + [_label("", 0.5, 1.0)] * (PLACES - len(titles))


def _signs(made: Equation, spans: Sequence[Span]) -> list[dict]:
    """The operator before each matrix, midway between its neighbours."""
    signs, before = [], None
    for sign, span in zip(made.signs, spans, strict=True):
        place = before + SIGN / 2 / WIDTH if before else span.left - SIGN / WIDTH
        signs.append(_label(markup.safe(sign), place, (HIGH + LOW) / 2))
        signs[-1]["font"] = {"size": 18}
        before = span.right
    return signs + [_label("", 0.5, 0.5)] * (PLACES - len(signs))


def _label(text: str, x: float, y: float, yanchor: str = "middle") -> dict:
    return {
        "text": text,
        "x": x,
        "y": y,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "center",
        "yanchor": yanchor,
        "showarrow": False,
        "font": {"size": 14},
    }


# --- slider and buttons -----------------------------------------------------------------------


def _play(pause: int) -> dict:
    return {
        "frame": {"duration": pause, "redraw": True},
        "transition": {"duration": 0},
        "mode": "immediate",
        "fromcurrent": True,
    }


def _slider(trace, dark: bool) -> dict:
    colours = theme.palette(dark)
    steps = [
        {
            "label": markup.symbol(symbol),
            "value": str(place),
            "method": "animate",
            "args": [[str(place)], _play(0)],
        }
        for place, symbol in enumerate(trace)
    ]
    return {
        "active": 0,
        "steps": steps,
        "x": 0,
        "len": 1,
        "y": 0,
        "yanchor": "bottom",
        "pad": {"l": 150, "r": 30, "t": 0, "b": 0},
        "bgcolor": colours.raised,
        "activebgcolor": colours.primary,
        "bordercolor": colours.line,
        "tickcolor": colours.muted,
        "font": {"color": colours.muted, "size": 11},
        "currentvalue": {
            "font": {"size": 14, "color": colours.ink},
            "xanchor": "left",
        },
    }


def _buttons(text, dark: bool) -> dict:
    colours = theme.palette(dark)
    stop = [[None], _play(0) | {"frame": {"duration": 0, "redraw": False}}]
    go_on = [None, _play(PAUSE)]
    names = {"play": "▶", "pause": "❚❚"}
    return {
        "type": "buttons",
        "direction": "left",
        "x": 0,
        "xanchor": "left",
        "y": 0.0,
        "yanchor": "bottom",
        "showactive": False,
        "bgcolor": colours.raised,
        "bordercolor": colours.line,
        "font": {"color": colours.ink, "size": 12},
        "pad": {"t": 0, "r": 8},
        "buttons": [
            {"label": markup.safe(text.get(key, sign)), "method": "animate", "args": args}
            for (key, sign), args in zip(names.items(), (go_on, stop), strict=True)
        ],
    }
