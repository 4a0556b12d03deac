"""Figures as plain data: what they draw are the tensors, and what a reader typed stays text."""

import json
import math
import re
import tomllib
from base64 import b64decode, b64encode
from hashlib import sha256
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import plotly.graph_objects as go
import pytest
import torch

import core
from core.figures import (
    Points,
    Series,
    bars,
    contact_sheet,
    curves,
    head_gallery,
    heatmap,
    histogram,
    space,
    standalone_html,
    step_frames,
    theme,
)
from core.figures.formula import inline
from core.figures.frames import KINDS
from core.figures.matrices import of_trace
from core.figures.standalone import _packed

ROOT = Path(__file__).resolve().parents[2]
INF = math.inf
HOSTILE = "<img src=x onerror=alert(1)> %{z} &lt;"
TOKENS = ["the", "cat", "the", HOSTILE]


def trace_of(name, **changes):
    return core.run(core.preset(name).changed(**changes))


@pytest.fixture(scope="module")
def causal():
    return trace_of("causal")


@pytest.fixture(scope="module")
def large():
    return trace_of("gpt2-small")


def cells(trace) -> np.ndarray:
    return np.asarray(trace.z, dtype=float)


def put_together(traces) -> np.ndarray:
    """The matrix that the traces of one place show, special numbers included."""
    specials = {"−∞": -INF, "∞": INF, "NaN": math.nan}
    finite, *rest = [t for t in traces if t.type == "heatmap" and t.visible is not False]
    whole = cells(finite)
    for trace in rest:
        whole[np.isfinite(cells(trace))] = specials[trace.name]
    return whole


def on_axis(figure, place: int) -> list:
    """The traces drawn on the axes of one place of a sheet."""
    axis = f"x{place + 1}" if place else "x"
    return [trace for trace in figure.data if trace.xaxis == axis]


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from strings(key)
            yield from strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from strings(inner)


# --- one matrix -------------------------------------------------------------------------------

MIXED = torch.tensor([[1.0, -2.5, -INF], [math.nan, 0.1, INF], [0.0, -INF, 2.0]])


def test_a_heatmap_shows_every_number_of_its_matrix():
    figure = heatmap(MIXED, symbol="masked")
    np.testing.assert_array_equal(put_together(figure.data), MIXED.numpy())
    assert [t.name for t in figure.data if t.type == "heatmap"] == ["masked", "−∞", "NaN", "∞"]


def test_special_numbers_say_so_when_hovered():
    said = {t.name: t.hovertemplate for t in heatmap(MIXED).data if t.type == "heatmap"}
    assert all(f"= {name}<" in said[name] for name in ("−∞", "NaN", "∞"))


def test_strokes_lie_over_the_cells_of_minus_infinity_only():
    (strokes,) = [t for t in heatmap(MIXED).data if t.type == "scatter"]
    middles = {
        (round(float(np.mean(strokes.y[i : i + 2]))), round(float(np.mean(strokes.x[i : i + 2]))))
        for i in range(0, len(strokes.x), 3)
    }
    assert middles == {(0, 2), (2, 1)}


def test_minus_infinity_is_written_only_where_there_is_room():
    few, many = (heatmap(torch.full((n, n), -INF), numbers=False).data[1] for n in (8, 9))
    assert few.text[0][0] == "−∞"
    assert many.text is None


def test_signed_numbers_are_read_around_zero_and_weights_from_0_to_1():
    signed, unit = heatmap([[0.5, -2.0]]).data[0], heatmap([[0.5, 0.1]], unit=True).data[0]
    assert (signed.zmin, signed.zmax) == (-2.0, 2.0)
    assert (unit.zmin, unit.zmax) == (0, 1)


def test_rows_of_the_same_name_stay_two_rows_with_row_0_on_top():
    figure = heatmap([[1.0], [2.0], [3.0]], rows=["the", "cat", "the"])
    axis = figure.layout.yaxis
    assert (axis.tickvals, axis.ticktext) == ((0, 1, 2), ("the", "cat", "the"))
    assert axis.range == (2.5, -0.5)
    assert cells(figure.data[0]).tolist() == [[1.0], [2.0], [3.0]]


def test_hovering_shows_digits_that_identify_the_number():
    values = torch.randn(5, 7, generator=torch.Generator().manual_seed(0))
    shown = heatmap(values).data[0].customdata
    read = [[np.float32(digits.replace("−", "-")) for digits in row] for row in shown]
    np.testing.assert_array_equal(np.array(read), values.numpy())


# --- the contact sheet ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["example", "two-heads", "causal", "grouped", "cross"])
def test_the_sheet_shows_every_step_in_order(name):
    trace = trace_of(name)
    figure = contact_sheet(trace, pick={"h": 1})
    for place, step in enumerate(trace.steps):
        shown = put_together(on_axis(figure, place))
        lead = [1 // trace.sizes["r"] if n == "g" else 1 for n in step.dims.split()[:-2]
                if n in "hg"]  # fmt: skip
        wide = step.dims.split()[-2] in ("h", "g")
        wanted = step.tensor if wide else step.tensor[tuple(lead)]
        np.testing.assert_array_equal(shown, wanted.reshape(len(shown), -1).float().numpy())
        assert re.search(rf"\(({', '.join(map(str, step.shape))})\)",
                         figure.layout.annotations[place].text)  # fmt: skip


def test_the_sheet_shows_the_chosen_sample():
    trace = core.run(core.AttentionConfig(S=3, H=4, h=2, B=2))
    figure = contact_sheet(trace, pick={"B": 1, "h": 1})
    place = list(trace).index("weights")
    shown = put_together(on_axis(figure, place))
    np.testing.assert_array_equal(shown, trace["weights"][1, 1].numpy())
    assert "[1, 1, %{y:d}, %{x:d}]" in on_axis(figure, place)[0].hovertemplate


def test_each_matrix_of_the_sheet_has_its_own_scale(causal):
    figure = contact_sheet(causal)
    for place, step in enumerate(causal.steps):
        first = on_axis(figure, place)[0]
        finite = step.tensor.float()
        top = float(finite[finite.isfinite()].abs().max())
        unit = step.symbol in ("mask", "weights")
        assert (first.zmin, first.zmax) == ((0, 1) if unit else (-top, top))


def test_the_current_step_is_framed(causal):
    at = list(causal).index("masked")
    by_name, by_place = contact_sheet(causal, current="masked"), contact_sheet(causal, current=at)
    (frame,) = by_name.layout.shapes
    assert frame == by_place.layout.shapes[0]
    x, y = by_name.layout[f"xaxis{at + 1}"].domain, by_name.layout[f"yaxis{at + 1}"].domain
    assert frame.x0 < x[0]
    assert x[1] < frame.x1
    assert frame.y0 < y[0]
    assert y[1] < frame.y1
    others = [n for n in range(2, len(causal) + 1) if n != at + 1]
    assert not any(
        frame.x0 <= by_name.layout[f"xaxis{n}"].domain[0] <= frame.x1
        and frame.y0 <= by_name.layout[f"yaxis{n}"].domain[0] <= frame.y1
        for n in others
    )


def test_fewer_columns_make_a_taller_sheet_without_overlaps(causal):
    wide, narrow = contact_sheet(causal, columns=6), contact_sheet(causal, columns=3)
    assert narrow.layout.height > wide.layout.height
    spots = [(tuple(narrow.layout[f"xaxis{n}"].domain), tuple(narrow.layout[f"yaxis{n}"].domain))
             for n in range(2, len(causal) + 1)]  # fmt: skip
    assert len({x for x, _ in spots}) == 3
    assert len(set(spots)) == len(spots)


def test_a_cell_of_a_reduced_matrix_is_the_largest_of_its_block_and_knows_where_it_stood(large):
    matrix = of_trace(large, "W_Q", most=1024)
    full, (down, across) = large["W_Q"].numpy(), matrix.block
    assert matrix.values.size <= 1024 < full.size
    for i, j in [(0, 0), (3, 17), (matrix.values.shape[0] - 1, matrix.values.shape[1] - 1)]:
        block = full[i * down : (i + 1) * down, j * across : (j + 1) * across]
        assert abs(matrix.values[i, j]) == np.abs(block).max()
        assert matrix.values[i, j] == full[tuple(matrix.where[i, j])]
    trace = heatmap(matrix).data[0]
    assert (trace.x0, trace.dx) == ((across - 1) / 2, across)
    assert "%{customdata[0]}, %{customdata[1]}" in trace.hovertemplate


def test_the_sheet_of_a_large_trace_stays_small(large):
    assert len(contact_sheet(large).to_json()) < 500_000


# --- the steps as frames ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["example", "two-heads", "causal", "grouped", "cross"])
def test_every_frame_shows_the_tensors_of_its_equation(name):
    trace = trace_of(name)
    figure = step_frames(trace)
    assert [frame.name for frame in figure.frames] == [str(i) for i in range(len(trace))]
    for step, frame in zip(trace.steps, figure.frames, strict=True):
        read = [part["symbol"] for part in step.op.equation(step.reads) if "symbol" in part]
        symbols = [*read, step.symbol]
        assert set(read) == set(step.reads)
        for slot in range(3):
            traces = frame.data[slot * len(KINDS) : (slot + 1) * len(KINDS)]
            if slot >= len(symbols):
                assert not any(trace.visible for trace in traces)
                continue
            matrix = of_trace(trace, symbols[slot]).values
            turned = step.op.save()["kind"] == "compare" and slot == 1
            np.testing.assert_array_equal(put_together(traces), matrix.T if turned else matrix)


def test_frames_say_everything_anew(causal):
    """What a frame leaves out, Plotly keeps from the frame before."""
    frames = [json.loads(frame.to_json()) for frame in step_frames(causal).frames]
    axes = {f"{axis}axis{n}" for axis in "xy" for n in ("", 2, 3)}
    for frame in frames:
        assert axes <= frame["layout"].keys()
        assert len(frame["layout"]["annotations"]) == 6
        assert [t["type"] for t in frame["data"]] == ([*["heatmap"] * 4, "scatter"] * 3)
        assert frame["traces"] == list(range(len(frame["data"])))
        said = {"visible", "text", "texttemplate", "customdata", "x0", "dx", "y0", "dy"}
        assert all(said <= t.keys() for t in frame["data"] if t["type"] == "heatmap")


def test_the_slider_has_a_step_for_every_frame(causal):
    figure = step_frames(causal)
    (slider,) = figure.layout.sliders
    assert [step.args[0][0] for step in slider.steps] == [frame.name for frame in figure.frames]


# --- the file that opens by itself ------------------------------------------------------------


@pytest.fixture(scope="module")
def page(causal):
    said = {"Q": f"One **{HOSTILE}** & `</script>` $d_k$", "K": "<script>alert(1)</script>"}
    words = {"title": HOSTILE, "intro": "</script><script>alert(2)</script>", "play": HOSTILE}
    return standalone_html(
        causal, labels={"S": TOKENS}, text=words, prose=said, lang='"><script>', dark=True
    )


def test_the_file_has_three_scripts_and_its_policy_names_those_that_run(page):
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", page, re.DOTALL)
    assert [tag.strip() for tag, _ in scripts] == [
        'type="application/json" id="figure-data"', "", ""]  # fmt: skip
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    for _, script in scripts[1:]:
        assert b64encode(sha256(script.encode()).digest()).decode() in policy
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]


def test_the_file_loads_nothing(page):
    own = re.sub(r"<script[^>]*>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"""(src|href|url|action)\s*[=(]""", re.sub(r"src=x on", "", own))


def test_the_file_shows_what_was_typed_as_text(page):
    own = re.sub(r"<script[^>]*>.*?</script>", "", page, flags=re.DOTALL)
    tags = set(re.findall(r"<([a-z]\w*)", own))
    assert "img" not in tags
    assert "script" not in tags
    assert "&lt;img src=x onerror=alert(1)&gt;" in own
    assert "&lt;script&gt;alert(1)" in own


def test_the_files_data_are_the_tensors(page, causal):
    data = re.search(r'id="figure-data">(.*?)</script>', page, re.DOTALL)[1]
    assert "<" not in data
    figure = json.loads(data)
    result = figure["frames"][list(causal).index("weights")]["data"][len(KINDS)]["z"]
    kind, sides = np.dtype(result["dtype"]), [int(n) for n in result["shape"].split(",")]
    read = np.frombuffer(b64decode(result["bdata"]), kind).reshape(sides)
    np.testing.assert_array_equal(read, causal["weights"].numpy())
    assert figure["config"]["showSendToCloud"] is False


def test_arrays_are_written_in_row_order_whatever_their_memory():
    array = np.arange(6, dtype=">f4").reshape(2, 3).T
    packed = _packed(array)
    read = np.frombuffer(b64decode(packed["bdata"]), np.dtype(packed["dtype"]).newbyteorder("<"))
    assert (packed["shape"], read.tolist()) == ("3, 2", [0, 3, 1, 4, 2, 5])


# --- formulas ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["example", "two-heads", "causal", "grouped", "cross"])
def test_every_formula_of_a_trace_can_be_shown_offline(name):
    for step in trace_of(name).steps:
        assert ElementTree.fromstring(inline(step.latex)).tag == "math", step.latex


def test_every_formula_of_the_prose_can_be_shown_offline():
    files = sorted((ROOT / "assets/text").glob("*/steps/*.md"))
    found = [f for path in files for f in re.findall(r"\$([^$\n]+)\$", path.read_text("utf-8"))]
    assert found
    for latex in found:
        latex = re.sub(r"\{\{\w+\}\}", "4", latex)
        assert ElementTree.fromstring(inline(latex)).tag == "math", latex


def test_scripts_fractions_and_roots_are_nested():
    shown = ElementTree.fromstring(inline(r"p_j = \frac{e^{x_j}}{\sqrt{d_k}}"))
    fraction = shown.find("mfrac")
    assert "".join(shown.find("msub").itertext()) == "pj"
    assert "".join(fraction[0].itertext()) == "exj"
    assert fraction[1].find(".//msqrt") is not None


def test_an_unknown_formula_is_shown_as_it_is_written():
    assert inline(r"\foo{<b>}") == r"<code>\foo{&lt;b&gt;}</code>"
    assert inline("{" * 5000).startswith("<code>")


# --- heads side by side -----------------------------------------------------------------------


def test_the_gallery_shows_all_heads_on_one_scale():
    weights = trace_of("grouped")["weights"]
    figure = head_gallery(weights, titles=["a", "b", "c", HOSTILE], rows=["x"] * 5, current=1)
    for place, head in enumerate(weights):
        (trace,) = on_axis(figure, place)
        np.testing.assert_array_equal(cells(trace), head.numpy())
        assert trace.coloraxis == "coloraxis"
        assert f"[{place}, " in trace.hovertemplate
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (0, 1)
    titles = [note.text for note in figure.layout.annotations]
    assert titles[0] == "a"
    assert "b" in titles[1]
    assert "▸" in titles[1]
    assert "▸" not in titles[2]


def test_a_signed_gallery_reaches_to_the_largest_of_all_heads():
    scores = torch.tensor([[[1.0, -3.0]], [[0.5, 2.0]]])
    scale = head_gallery(scores, unit=False).layout.coloraxis
    assert (scale.cmin, scale.cmax) == (-3.0, 3.0)


# --- charts of plain numbers ------------------------------------------------------------------


def test_histogram_bars_are_counts_or_have_area_1():
    sample = [0.0, 0.1, 0.9, 2.0, math.nan, INF]
    edges = [0.0, 0.5, 1.0, 3.0]
    counts = histogram({"a": sample}, bins=edges, density=False).data[0]
    assert list(counts.y) == [2, 1, 1]
    assert list(counts.width) == [0.5, 0.5, 2.0]
    area = histogram({"a": sample}, bins=edges).data[0]
    assert float(np.dot(area.y, area.width)) == pytest.approx(1.0)
    assert list(area.y) == pytest.approx([1.0, 0.5, 0.125])


def test_histogram_draws_the_theory_it_is_given():
    figure = histogram({"a": [0.0, 1.0]}, theory=[Series("N", [0, 1], [0.4, 0.2])])
    assert list(figure.data[1].y) == [0.4, 0.2]
    assert figure.data[1].type == "scatter"


def test_curves_are_told_apart_by_more_than_colour():
    figure = curves([Series(str(i), [1, 10], [i, i]) for i in range(6)], log_x=True, log_y=True)
    looks = [(t.line.color, t.line.dash, t.marker.symbol) for t in figure.data]
    assert all(len(set(look)) == 6 for look in zip(*looks, strict=True))
    assert [list(t.y) for t in figure.data] == [[i, i] for i in range(6)]
    assert (figure.layout.xaxis.type, figure.layout.yaxis.type) == ("log", "log")


def test_marks_on_a_logarithmic_axis_carry_their_name_at_the_exponent():
    layout = curves([Series("a", [1, 100], [0, 1])], log_x=True, marks={"here": 10.0}).layout
    assert layout.shapes[0].x0 == 10.0
    assert layout.annotations[0].x == 1.0


def test_bars_of_the_same_name_stay_apart():
    figure = bars(["the", "the"], {"a": [1.0, 2.0], "b": [3.0, 4.0]}, sideways=True)
    assert [list(t.x) for t in figure.data] == [[1.0, 2.0], [3.0, 4.0]]
    assert [list(t.y) for t in figure.data] == [[0, 1], [0, 1]]
    assert figure.layout.yaxis.ticktext == ("the", "the")
    assert figure.layout.yaxis.range == (1.5, -0.5)


def test_points_and_arrows_in_two_and_three_dimensions():
    flat = space([Points("Q", [[1, 2], [3, -4]], ["a", "b"], arrows=True)])
    shafts, points = flat.data
    assert [list(points.x), list(points.y)] == [[1, 3], [2, -4]]
    np.testing.assert_array_equal(shafts.x, [0, 1, math.nan, 0, 3, math.nan])
    deep = space([Points("K", [[1, 2, 3]], ["a"])])
    assert deep.data[0].type == "scatter3d"
    assert list(deep.data[0].z) == [3]
    (name,) = deep.layout.scene.annotations
    assert (name.text, name.x, name.y, name.z) == ("a", 1, 2, 3)


# --- words and colours ------------------------------------------------------------------------

WORDS = {"pooled": HOSTILE, "play": HOSTILE, "pause": HOSTILE}


def everything(dark=False) -> dict[str, go.Figure]:
    """One figure of each kind, every word in it hostile."""
    trace, hostile = trace_of("causal"), [HOSTILE] * 4
    words = {"rows": hostile, "cols": hostile, "row_title": HOSTILE, "col_title": HOSTILE}
    axes = {"x_title": HOSTILE, "y_title": HOSTILE, "dark": dark}
    one = Series(HOSTILE, [1.0, 2.0], [3.0, 4.0])
    labels = {"S": hostile}
    at = [[1.0, 2.0]] * 4
    return {
        "heatmap": heatmap(trace["masked"], symbol=HOSTILE, text=WORDS, dark=dark, **words),
        "sheet": contact_sheet(trace, labels=labels, text=WORDS, dark=dark, current=0),
        "frames": step_frames(trace, labels=labels, text=WORDS, dark=dark),
        "gallery": head_gallery(
            trace["masked"][None], titles=[HOSTILE], symbol=HOSTILE, text=WORDS, dark=dark, **words
        ),
        "curves": curves([one, one], marks={HOSTILE: 1.0}, **axes),
        "histogram": histogram({HOSTILE: [1.0, 2.0]}, theory=[one], **axes),
        "bars": bars(hostile, {HOSTILE: [1.0] * 4, "b": [1.0] * 4}, written=True, **axes),
        "plane": space([Points(HOSTILE, at, hostile, arrows=True)], titles=hostile[:2], dark=dark),
        "space": space(
            [Points(HOSTILE, [[1.0, 2.0, 3.0]] * 4, hostile)], titles=hostile[:3], dark=dark
        ),
    }


def test_no_word_of_a_reader_is_markup_for_plotly():
    for kind, figure in everything().items():
        found = [text for text in strings(figure.to_plotly_json()) if "img" in text]
        assert found, kind
        for text in found:
            assert "<img" not in text, (kind, text)
            assert "%{z} " not in text, (kind, text)


@pytest.mark.parametrize("dark", [False, True])
def test_plotly_accepts_every_figure(dark):
    """They are built without its validation, which would take most of the time."""
    for figure in everything(dark).values():
        go.Figure(figure.to_dict())
        for frame in figure.frames:
            go.Figure(data=frame.data, layout=frame.layout)
        assert figure.layout.template.layout.paper_bgcolor == theme.palette(dark).ground


def test_the_templates_wear_the_colours_of_the_app():
    themes = tomllib.loads((ROOT / ".streamlit/config.toml").read_text("utf-8"))["theme"]
    for name, colours in (("light", theme.LIGHT), ("dark", theme.DARK)):
        own = themes[name]
        assert colours.ground == own["backgroundColor"]
        assert colours.raised == own["secondaryBackgroundColor"]
        assert colours.ink == own["textColor"]
        assert colours.primary == own["primaryColor"]
        assert colours.line == own["borderColor"]
    assert themes["font"] == theme.FONT


def test_the_microscope_wears_the_same_colours():
    script = (ROOT / "assets/microscope/colour.js").read_text("utf-8")
    for name, colours in (("light", theme.LIGHT), ("dark", theme.DARK)):
        ends = re.search(rf"{name}: {{(.*?)}}", script)[1]
        assert dict(re.findall(r'(\w+): "(#\w+)"', ends)) == {
            "negative": colours.negative, "positive": colours.positive, "share": colours.share,
        }  # fmt: skip
        assert re.search(r'NAN = "(#\w+)"', script)[1] == colours.nan


# Machado and others 2009, severity 1, on linear RGB.
SEEN = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                   [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                     [-0.011820, 0.042940, 0.968881]],
}  # fmt: skip


def seen_as(colour: str, kind: str) -> np.ndarray:
    """OKLab of a colour as a reader with this colour vision has it."""
    linear = np.clip(np.array(SEEN[kind]) @ theme._linear(colour), 0, 1)
    return np.array(theme._times(theme._TO_LAB, np.cbrt(theme._times(theme._TO_CONE, linear))))


@pytest.mark.parametrize("colours", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
@pytest.mark.parametrize("kind", SEEN)
def test_negative_positive_and_zero_look_different_to_every_reader(colours, kind):
    three = [seen_as(c, kind) for c in (colours.negative, colours.raised, colours.positive)]
    for i, j in ((0, 1), (1, 2), (0, 2)):
        assert np.linalg.norm(three[i] - three[j]) > 0.15


@pytest.mark.parametrize("dark", [False, True])
def test_colour_scales_grow_evenly_away_from_zero(dark):
    def away(scale):
        zero = theme.palette(dark).raised
        lightness = [theme._lab(colour)[0] for _, colour in scale]
        return [abs(x - theme._lab(zero)[0]) for x in lightness]

    unit, signed = away(theme.unit(dark)), away(theme.signed(dark))
    half = len(signed) // 2
    assert unit == sorted(unit)
    assert signed[half:] == sorted(signed[half:])
    assert signed[: half + 1] == sorted(signed[: half + 1], reverse=True)
    assert theme.signed(dark)[half] == [0.5, theme.palette(dark).raised]


@pytest.mark.parametrize("colours", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
def test_words_and_lines_can_be_read(colours):
    for ground in (colours.ground, colours.raised):
        assert theme.contrast(colours.ink, ground) >= 7
        assert theme.contrast(colours.muted, ground) >= 4.5
        assert all(theme.contrast(colour, ground) >= 3 for colour in colours.series)
