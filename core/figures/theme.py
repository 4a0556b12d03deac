"""How every chart looks: two Plotly templates that match `.streamlit/config.toml`, and the colours.

Signed numbers run from orange over the ground to blue, weights from the ground to teal: pairs that
readers with any common colour vision tell apart. `assets/microscope/colour.js` draws the same
numbers in the same colours; a test compares the two files. Pass `theme=None` to `st.plotly_chart`,
which else lays its own template over this one.
"""

from functools import cache
from typing import NamedTuple

FONT = (
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'PingFang SC', 'Microsoft YaHei', "
    "'Noto Sans CJK SC', 'Noto Sans SC', sans-serif"
)
CODE_FONT = "ui-monospace, 'Cascadia Mono', 'SF Mono', Menlo, Consolas, monospace"

# What a chart may do in the browser. Plotly's own defaults would offer to upload it.
CONFIG = {
    "displaylogo": False,
    "showSendToCloud": False,
    "responsive": True,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
}
STILL = CONFIG | {"displayModeBar": False}  # for charts with nothing to zoom into

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
MARKERS = ("circle", "square", "diamond", "triangle-up", "cross", "star")


class Palette(NamedTuple):
    """The colours of one theme. `series` tell lines apart, together with DASHES and MARKERS."""

    ground: str
    raised: str
    ink: str
    muted: str
    line: str
    primary: str
    negative: str
    positive: str
    share: str
    nan: str
    series: tuple[str, ...]


LIGHT = Palette(
    ground="#fdfdfb", raised="#f0f4f3", ink="#16292e", muted="#52666b", line="#c9d5d5",
    primary="#0f6674", negative="#c2571a", positive="#1d5fc4", share="#0b6e63", nan="#a3128f",
    series=("#1d5fc4", "#c2571a", "#0b7a6e", "#a3128f", "#7a6400", "#55646a"),
)  # fmt: skip
DARK = Palette(
    ground="#0f1a1d", raised="#18272b", ink="#e4eeee", muted="#9fb3b6", line="#34494f",
    primary="#33a3ae", negative="#f2994a", positive="#6fa8ff", share="#4fd1b8", nan="#a3128f",
    series=("#6fa8ff", "#f2994a", "#4fd1b8", "#e58bd6", "#d6c04e", "#b3c0c3"),
)  # fmt: skip
STOPS = 9  # of a colour scale; Plotly blends between them


def palette(dark: bool = False) -> Palette:
    """The colours of the dark or the light theme."""
    return DARK if dark else LIGHT


@cache
def signed(dark: bool = False) -> list[list]:
    """A colour scale for [−max, max]: negative, the ground at 0, positive."""
    theme = palette(dark)
    low = _blend(theme.negative, theme.raised)
    return [[p / 2, c] for p, c in low] + [
        [0.5 + p / 2, c] for p, c in _blend(theme.raised, theme.positive)[1:]
    ]


@cache
def unit(dark: bool = False) -> list[list]:
    """A colour scale for [0, 1]: the ground at 0, the colour of a full share at 1."""
    theme = palette(dark)
    return [list(stop) for stop in _blend(theme.raised, theme.share)]


@cache
def hidden(dark: bool = False) -> str:
    """The ground of −∞: apart from that of 0, and from both ends of the scale."""
    return mix(palette(dark).raised, palette(dark).ink, 0.12)


def _blend(start: str, end: str) -> list[tuple[float, str]]:
    places = [i / (STOPS - 1) for i in range(STOPS)]
    return [(place, mix(start, end, place)) for place in places]


@cache
def template(dark: bool = False) -> dict:
    """The Plotly template of a theme. A heatmap picks its scale by its range: −max…max or 0…1."""
    theme = palette(dark)
    axis = {
        "gridcolor": mix(theme.line, theme.ground, 0.4),
        "linecolor": theme.line,
        "zerolinecolor": theme.line,
        "tickcolor": theme.line,
        "tickfont": {"color": theme.muted},
        "title": {"font": {"color": theme.ink, "size": 13}, "standoff": 8},
        "automargin": True,
        "exponentformat": "SI",  # 8 G, as beside the figures, not Plotly's 8 B
    }
    space = axis | {"backgroundcolor": theme.raised, "showbackground": True}
    del space["automargin"], space["title"]
    layout = {
        "paper_bgcolor": theme.ground,
        "plot_bgcolor": theme.ground,
        "font": {"family": FONT, "color": theme.ink, "size": 13},
        "colorway": list(theme.series),
        "colorscale": {
            "diverging": signed(dark),
            "sequential": unit(dark),
            "sequentialminus": [[1 - p, c] for p, c in reversed(unit(dark))],
        },
        "hoverlabel": {
            "bgcolor": theme.raised,
            "bordercolor": theme.line,
            "font": {"family": FONT, "color": theme.ink, "size": 13},
            "align": "left",
        },
        "annotationdefaults": {"font": {"color": theme.ink}},
        "legend": {"bgcolor": "rgba(0,0,0,0)"},
        "margin": {"l": 8, "r": 8, "t": 24, "b": 8},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": theme.muted, "activecolor": theme.primary},
        "xaxis": axis,
        "yaxis": axis,
        "scene": {"xaxis": space, "yaxis": space, "zaxis": space},
        "coloraxis": {"colorbar": {"outlinewidth": 0, "thickness": 12}},
    }
    return {"layout": layout, "data": {"heatmap": [{"autocolorscale": True}]}}


# --- colour arithmetic, evenly to the eye (OKLab) ---------------------------------------------


def mix(start: str, end: str, share: float) -> str:
    """The colour `share` of the way from one to another, "#rrggbb".

    >>> mix("#000000", "#ffffff", 0.0), mix("#000000", "#ffffff", 1.0)
    ('#000000', '#ffffff')
    """
    from_, to = _lab(start), _lab(end)
    return _hex([a + (b - a) * share for a, b in zip(from_, to, strict=True)])


def contrast(one: str, other: str) -> float:
    """Contrast of two colours after WCAG, 1…21."""
    low, high = sorted(_luminance(colour) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


_TO_CONE = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
_TO_LAB = (
    (0.2104542553, 0.793617785, -0.0040720468),
    (1.9779984951, -2.428592205, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.808675766),
)
_FROM_LAB = (
    (1.0, 0.3963377774, 0.2158037573),
    (1.0, -0.1055613458, -0.0638541728),
    (1.0, -0.0894841775, -1.291485548),
)
_FROM_CONE = (
    (4.0767416621, -3.3077115913, 0.2309699292),
    (-1.2684380046, 2.6097574011, -0.3413193965),
    (-0.0041960863, -0.7034186147, 1.707614701),
)


def _times(matrix, vector):
    return [sum(m * v for m, v in zip(row, vector, strict=True)) for row in matrix]


def _linear(colour: str) -> list[float]:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def _luminance(colour: str) -> float:
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), _linear(colour), strict=True))


def _lab(colour: str) -> list[float]:
    return _times(_TO_LAB, [c ** (1 / 3) for c in _times(_TO_CONE, _linear(colour))])


def _hex(lab) -> str:
    linear = _times(_FROM_CONE, [c**3 for c in _times(_FROM_LAB, lab)])
    clipped = [min(1.0, max(0.0, c)) for c in linear]
    shown = [12.92 * c if c <= 0.0031308 else 1.055 * c ** (1 / 2.4) - 0.055 for c in clipped]
    return "#" + "".join(f"{round(255 * c):02x}" for c in shown)
