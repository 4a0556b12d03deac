"""What the scaling page shows: histograms beside theory, numbers beside predictions, curves."""

import math

import streamlit as st

from core import device
from core.experiments.scaling import (
    WIDTHS,
    Pairs,
    Point,
    Rows,
    Sample,
    Spread,
    one_row,
    point,
    sample,
    sampled,
    sweep,
    unscaled,
)
from core.figures import CONFIG
from core.figures.scaling import against_width, by_rank, dot_products
from core.numbers import write
from parts.progress import gathered
from parts.scaling_controls import broken_names, statistic, written
from parts.tables import table
from parts.text import _, language, prose

NORMAL_BEYOND = math.erfc(3 / math.sqrt(2))  # of a normal distribution, outside three deviations
PRODUCT = "q·k"
LEVEL = 0.15  # of the entropy of an even row: a curve that moves by less is called level
UNEVEN = 3  # a mean this many times its median comes from a few rows


def dark() -> bool:
    """Whether the page is dark."""
    return st.context.theme.type == "dark"


def sample_of(pairs: Pairs) -> Sample:
    """The sample asked for, or what there is of it once it was stopped."""
    if len(pairs.chunks) == 1:
        return sampled(pairs)
    return gathered("scaling_work", pairs, lambda: sample(pairs), len(pairs.chunks))[-1]


# --- the histograms ---------------------------------------------------------------------------


def histograms(found: Sample) -> None:
    """Both histograms with their curves."""
    same = st.toggle(_("One scale for both"), True, key="scaling_one_scale", bind="query-params")
    d_k = found.pairs.d_k
    names = (
        PRODUCT,
        f"{PRODUCT} / √{d_k}",
        _("measured"),
        _("normal curve, predicted"),
        _("normal curve, as claimed"),
    )
    alt = _(
        "Histograms of {count} dot products: before the division the standard deviation is "
        "{before}, after it {after}."
    ).format(
        count=written(found.done),
        before=write(found.raw.measured.deviation, 3),
        after=write(found.scaled.measured.deviation, 3),
    )
    figure = dot_products(found, names=names, same_axis=same, dark=dark())
    st.plotly_chart(figure, theme=None, key="scaling_histograms", config=CONFIG, alt=alt)
    st.caption(
        prose(
            "scaling/sample",
            count=written(found.done),
            seed=found.pairs.seed,
            device=device().type,
            d_k=written(d_k),
        )
    )


def numbers(found: Sample) -> None:
    """Two tables: what was measured, what was predicted, what the claim says."""
    left, right = st.columns(2, gap="large")
    root = f"√{written(found.pairs.d_k)}"
    for column, name, spread in (
        (left, PRODUCT, found.raw),
        (right, f"{PRODUCT} / {root}", found.scaled),
    ):
        _table(name, spread, found.pairs.entries.as_assumed, column)


def _table(name: str, spread: Spread, as_assumed: bool, place) -> None:
    """The claim has a column of its own where it is not the prediction."""
    kinds = [spread.measured, spread.predicted] + [spread.claimed] * (not as_assumed)
    head = [name, _("measured"), _("predicted")] + [_("claimed")] * (not as_assumed)
    rows = [
        (_("mean"), [write(m.mean) for m in kinds]),
        (_("variance"), [write(m.variance) for m in kinds]),
        (_("standard deviation σ"), [write(m.deviation) for m in kinds]),
        ("3σ", [f"±{write(3 * m.deviation)}" for m in kinds]),
        (_("outside 3σ"), [_percent(spread.beyond)] + [_percent(NORMAL_BEYOND)] * (len(kinds) - 1)),
    ]
    table("", head, [[label, *cells] for label, cells in rows], place=place)


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def verdict(found: Sample) -> None:
    """Whether the variance has become 1, and if not, which broken assumption shows how."""
    entries = found.pairs.entries
    facts = {
        "variance": write(found.scaled.variance, 5),
        "margin": write(found.scaled.margin, 2),
        "predicted": write(found.scaled.predicted.variance),
        "count": written(found.done),
    }
    if found.becomes_one:
        name = "holds" if entries.as_assumed else "unnoticed"
        st.success(prose(f"scaling/{name}", **facts), icon=":material/check:")
    else:
        name = "chance" if entries.as_assumed else "fails"
        st.warning(prose(f"scaling/{name}", **facts), icon=":material/close:")
    d_k, moments = found.pairs.d_k, found.scaled.predicted
    for broken in broken_names(entries):
        value = getattr(entries, broken)
        alone = type(entries)(entries.distribution, **{broken: value}).moments(d_k)
        facts = {"value": write(value), "alone": write(alone.variance / d_k), "d_k": written(d_k)}
        facts |= {"mean": write(moments.mean), "distribution": entries.distribution}
        st.markdown(prose(f"scaling/broken_{broken}", **facts))


# --- rows of scores ---------------------------------------------------------------------------


def names(own: float) -> tuple[str, str, str]:
    """The three ways to divide."""
    return (
        _("q·k, not divided"),
        "q·k / √d_k",
        _("q·k / τ, τ = {tau}").format(tau=write(own)),
    )


def row(rows: Rows, d_k: int, own: float) -> None:
    """One row of weights under each divisor, and the averages over all rows in a table."""
    weights = one_row(rows, d_k, own)
    figure = by_rank(
        weights,
        names=names(own),
        axes=(_("rank of the key, largest weight first"), _("weight")),
        dark=dark(),
    )
    largest = [write(each[0], 2) for each in weights]
    alt = _(
        "Weights of one query over {T} keys. The largest: {raw} undivided, {scaled} after "
        "division by √d_k, {own} after division by τ."
    ).format(T=rows.T, **dict(zip(("raw", "scaled", "own"), largest, strict=True)))
    st.plotly_chart(figure, theme=None, key="scaling_row", config=CONFIG, alt=alt)
    points = [point(rows, d_k, divisor) for divisor in (1.0, d_k**0.5, own)]
    _averages(points)
    T = rows.T
    even = {"entropy": math.log(T), "largest": 1 / T, "gradient": math.sqrt(1 / T - 1 / T**2)}
    facts = {name: write(value, 3) for name, value in even.items()}
    st.caption(prose("scaling/averages", T=T, **facts))


def _averages(points: list[Point]) -> None:
    """A table of the means over all rows."""
    labels = (_("entropy"), _("largest weight"), _("gradient by scores"), _("gradient by q"))
    fields = ("entropy", "largest", "jacobian", "to_query")
    lines = []
    for label, field in zip(labels, fields, strict=True):
        means = [getattr(point, field).mean for point in points]
        lines.append([label, *(write(mean, 3 if mean > 0.1 else 2) for mean in means)])
    table("", [_("mean over rows"), "q·k", "q·k / √d_k", "q·k / τ"], lines)


def curves(rows: Rows, d_k: int, own: float) -> list[tuple[Point, Point, Point]]:
    """Entropy, largest weight and both gradients against d_k; returns the points measured."""
    shown = statistic()
    points = gathered("scaling_sweep", (rows, own), lambda: sweep(rows, own), len(WIDTHS))
    last = {
        "d_k": written(points[-1][0].d_k),
        "raw": write(getattr(points[-1][0].jacobian, shown), 2),
        "scaled": write(getattr(points[-1][1].jacobian, shown), 2),
    }
    shared = {"statistic": shown, "names": names(own), "chosen": d_k, "dark": dark()}
    left, right = st.columns(2, gap="large")
    with left:
        figure = against_width(
            points,
            ("entropy", "largest"),
            titles=(_("entropy (nats); dotted: ln T, an even row"), _("largest weight"), "d_k"),
            levels=(math.log(rows.T), None),
            **shared,
        )
        alt = _("Entropy and largest weight of a row against d_k, for three ways to divide.")
        st.plotly_chart(figure, theme=None, key="scaling_softmax", config=CONFIG, alt=alt)
    with right:
        figure = against_width(
            points,
            ("jacobian", "to_query"),
            titles=(_("‖∂ weights / ∂ scores‖"), _("‖∂ weights / ∂ q‖"), "d_k"),
            log=True,
            **shared,
        )
        alt = _(
            "Norm of the gradient through softmax against d_k. At d_k = {d_k}: {raw} undivided, "
            "{scaled} divided by √d_k."
        ).format(**last)
        st.plotly_chart(figure, theme=None, key="scaling_gradient", config=CONFIG, alt=alt)
    return points


def reading(points: list[tuple[Point, Point, Point]], rows: Rows, own: float) -> None:
    """What the curves say, in the numbers on screen: sentences are chosen by what was measured."""
    peak = max((each[0] for each in points), key=lambda p: p.jacobian.median)
    raw, scaled, _own = points[-1]
    entropies = [each[1].entropy.mean for each in points]
    facts = {
        "last": written(raw.d_k),
        "largest": write(raw.largest.mean, 2),
        "entropy": write(raw.entropy.mean, 2),
        "even": write(math.log(rows.T), 3),
        "entropy_first": write(entropies[0], 3),
        "entropy_last": write(entropies[-1], 3),
        "peak": written(peak.d_k),
        "top": write(peak.jacobian.median, 2),
        "median": write(raw.jacobian.median, 2),
        "mean": write(raw.jacobian.mean, 2),
        "scaled": write(scaled.jacobian.median, 2),
        "query": write(raw.to_query.mean, 2),
        "query_median": write(raw.to_query.median, 2),
        "query_scaled": write(scaled.to_query.mean, 2),
        "query_scaled_median": write(scaled.to_query.median, 2),
        "tau": write(own),
        "square": write(own**2),
    }
    level = abs(entropies[-1] - entropies[0]) < LEVEL * math.log(rows.T)
    course = {points[0][0].d_k: "falls", raw.d_k: "grows"}.get(peak.d_k, "rises")
    said = ["weights", "level" if level else "unlevel"], [course], ["query"], ["tau"]
    if raw.jacobian.mean > UNEVEN * raw.jacobian.median:
        said[1].append("uneven")
    for names in said:
        sentences = [prose(f"scaling/curves_{name}", **facts) for name in names]
        st.markdown(("" if language() == "zh" else " ").join(sentences))


def t5(pairs: Pairs) -> None:
    """Why T5 divides by nothing, measured."""
    found = unscaled(pairs.d_k, pairs.seed)
    facts = {"usual": write(found.usual, 3), "t5": write(found.t5, 3), "d_k": written(pairs.d_k)}
    st.markdown(prose("scaling/t5", **facts))
