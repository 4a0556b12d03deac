"""Figures of the scaling and softmax studies as plain data: what is drawn is what was measured."""

import pytest

from core.experiments.scaling import Entries, Pairs, Point, Typical, sampled
from core.experiments.softmax import slope, temperatures
from core.figures.scaling import against_width, by_rank, dot_products
from core.figures.softmax import bars, temperature
from core.figures.softmax import slope as slope_figure

NAMES = ("q·k", "scaled", "measured", "predicted", "claimed")


def test_histograms_stand_over_their_bins_with_the_curves_of_theory():
    found = sampled(Pairs(Entries(variance=2.0)))
    drawn = dot_products(found, names=NAMES)
    assert [trace.name for trace in drawn.data] == ["measured", "predicted", "claimed"] * 2
    bar, predicted, claimed = drawn.data[:3]
    assert sum(w * h for w, h in zip(bar.width, bar.y, strict=True)) == pytest.approx(1, abs=1e-3)
    assert max(predicted.y) == pytest.approx(0.3989 / 16, rel=1e-3)  # σ = √(64 · 2²)
    assert max(claimed.y) == pytest.approx(0.3989 / 8, rel=1e-3)
    assert sorted(line.x0 for line in drawn.layout.shapes) == [-48, -6, 6, 48]
    assert drawn.layout.xaxis2.matches == "x"
    assert dot_products(found, names=NAMES, same_axis=False).layout.xaxis2.matches is None


def point(d_k, value):
    same = Typical(value, value / 2)
    return Point(d_k, 1.0, same, same, same, same)


def widths(values, **options):
    points = [(point(4**n, value),) for n, value in enumerate(values)]
    return against_width(
        points, ("jacobian", "to_query"), names=("raw",), titles=("J", "q", "d_k"), **options
    )


def test_curves_against_width_show_the_statistic_and_leave_zeros_out_of_a_logarithm():
    assert widths([4.0, 2.0, 0.0]).data[0].y == (2.0, 1.0, 0.0)
    assert widths([4.0, 2.0, 0.0], statistic="mean", log=True).data[1].y == (4.0, 2.0, None)


def test_a_logarithmic_axis_has_few_labels_but_some():
    short = widths([0.4, 0.3, 0.2], log=True).layout.yaxis
    assert {0.1, 0.2} <= set(short.tickvals)
    assert widths([1.0, 1e-3], log=True).layout.yaxis.dtick == 1
    assert widths([1.0, 1e-17], log=True).layout.yaxis.dtick == 5


def test_weights_stand_by_rank():
    drawn = by_rank([[0.7, 0.3], [0.6, 0.4]], names=("a", "b"), axes=("rank", "weight"))
    assert drawn.data[0].x.tolist() == [1, 2]
    assert drawn.data[1].y.tolist() == [0.6, 0.4]


def test_twelve_shares_can_be_told_apart():
    scores = tuple(float(x) for x in range(12))
    along, shares = temperatures(scores)
    drawn = temperature(along, shares, at=2.0, names=[str(x) for x in scores], title="τ")
    assert len({(line.line.color, line.line.dash) for line in drawn.data}) == 12
    assert drawn.layout.shapes[0].x0 == 2.0
    assert drawn.layout.xaxis.type == "log"


def test_bars_leave_room_for_their_numbers():
    drawn = bars([[2.0, -4.0], [1.0, 0.1], [0.9, 0.1]], titles="abc", names=("x₁", "x₂"))
    low, high = drawn.layout.yaxis.range
    assert low < -4.0
    assert high > 2.0
    assert drawn.data[0].marker.color[0] != drawn.data[0].marker.color[1]
    assert drawn.data[2].y == (0.9, 0.1)


def test_the_point_on_a_slope_is_drawn_only_in_sight():
    found, names = slope((0.0, 0.0), 0), ("p", "dp", "1/4", "now")
    near, far = (slope_figure(found, at=(x, 0.5), names=names, title="x") for x in (0.0, -100.0))
    assert [trace.name for trace in near.data] == list(names)
    assert [trace.name for trace in far.data] == list(names[:3])
    assert near.data[2].y.tolist() == [0.25, 0.25]
