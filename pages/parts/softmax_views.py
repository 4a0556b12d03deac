"""What the softmax page shows: every intermediate, the derivatives, where number types give out."""

import math

import streamlit as st

from core.experiments.softmax import (
    COOLEST,
    DTYPES,
    STEEPEST,
    WARMEST,
    InType,
    Limit,
    Parts,
    Row,
    engine,
    in_types,
    jacobian,
    moved,
    slope,
    subscripts,
    taken_apart,
    temperatures,
)
from core.figures import CONFIG, heatmap
from core.figures.softmax import bars
from core.figures.softmax import slope as slope_figure
from core.figures.softmax import temperature as temperature_figure
from core.numbers import write
from parts.choice import choice
from parts.tables import table
from parts.text import N_, _, prose

WARMTHS = (COOLEST, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, WARMEST)
INKED = 8  # scores: up to here the heatmap has room for its numbers
SHOWN = {"autograd": N_("by autograd"), "formula": N_("by formula"), "difference": N_("difference")}


def dark() -> bool:
    """Whether the page is dark."""
    return st.context.theme.type == "dark"


# --- step by step -----------------------------------------------------------------------------


def dtype() -> str:
    """The number type that the steps are computed in."""
    return choice(
        _("Computed in"), {name: name for name in DTYPES}, "softmax_dtype", default="float64"
    )


def steps(scores: Row, temperature: float, kind: str) -> None:
    """Two tables with every intermediate: exp straight away, and with the largest taken off."""
    found = taken_apart(scores, temperature, dtype=kind)
    at, score = subscripts(len(scores)), "x / τ" if temperature != 1 else "x"
    left, right = st.columns(2, gap="large")
    naive = (found.divided, found.naive, found.naive_share)
    _half(left, _("exp straight away"), score, at, naive, found.naive_total)
    safe = (found.shifted, found.exp, found.share)
    _half(right, _("the largest taken off first"), _("score − largest"), at, safe, found.total)
    if found.naive_breaks:
        st.warning(_broken(found), icon=":material/close:")
    _bars(found, at)
    largest = scores.index(max(scores))
    text = engine(scores, temperature).explain("weights", (0, largest)).text
    st.markdown(f"**{_('The engine says')}** p{at[largest][1:]}")
    st.code(text, language=None, wrap_lines=True)


def _half(place, title: str, score: str, at: list[str], columns: tuple[Row, ...], total) -> None:
    """One table: scores, their exponentials, their shares, and the sums."""
    rows = [[name, *map(write, each)] for name, *each in zip(at, *columns, strict=True)]
    rows.append([_("sum"), "", write(total), write(math.fsum(columns[-1]))])
    table(title, ["", score, "exp", _("share")], rows, sum_row=True, place=place)


def _broken(found: Parts) -> str:
    """Why the left table is of no use."""
    name = "overflow" if found.naive_total else "vanish"
    whole = not any(map(math.isnan, found.share))
    more = prose("softmax/rescued" if whole else "softmax/lost", dtype=found.dtype)
    return f"{prose(f'softmax/{name}', dtype=found.dtype)} {more}"


def _bars(found: Parts, at: list[str]) -> None:
    rows = (found.divided, found.exp, found.share)
    if not all(math.isfinite(value) for row in rows for value in row):
        return  # nothing to draw; the warning above has said why
    titles = (_("score"), _("exp(score − largest)"), _("share"))
    parts = ", ".join(f"{n}: {write(p, 3)}" for n, p in zip(at, found.share, strict=True))
    alt = _("Scores, exponentials and shares as bars. Shares: {shares}.").format(shares=parts)
    figure = bars(rows, titles=titles, names=at, dark=dark())
    st.plotly_chart(figure, theme=None, key="softmax_bars", config=CONFIG, alt=alt)


def constant() -> float:
    """The number added to every score."""
    return st.slider(
        _("Constant c added to every score"),
        -20.0,
        20.0,
        10.0,
        0.5,
        key="softmax_constant",
        bind="query-params",
    )


def shifted(scores: Row, added: float, temperature: float) -> None:
    """The shares without and with the constant."""
    found = moved(scores, added, temperature)
    lines = [[name, *map(write, each), write(abs(each[1] - each[0]), 2)] for name, *each in
             zip(subscripts(len(scores), "p"), found.before, found.after, strict=True)]  # fmt: skip
    head = ["", "c = 0", f"c = {write(added)}", _("difference")]
    table("", head, lines)
    before, after = (taken_apart(scores, temperature, c) for c in (0.0, added))
    facts = {
        "c": write(added),
        "difference": write(found.difference, 2),
        "before": write(before.naive_total),
        "after": write(after.naive_total),
        "factor": write(after.naive_total / before.naive_total) if _usable(before) else "–",
    }
    st.markdown(prose("softmax/constant_seen", **facts))


def _usable(found: Parts) -> bool:
    return 0 < found.naive_total < math.inf


# --- temperature ------------------------------------------------------------------------------


def temperature() -> float:
    """What every score is divided by."""
    return st.select_slider(
        _("Temperature τ"), WARMTHS, value=1.0, key="softmax_temperature", bind="query-params"
    )


def warmth(scores: Row, chosen: float) -> None:
    """All shares against temperature."""
    along, shares = temperatures(scores)
    now = taken_apart(scores, chosen).share
    at = subscripts(len(scores), "p")
    figure = temperature_figure(
        along, shares, at=chosen, names=at, title=_("temperature τ"), dark=dark()
    )
    alt = _(
        "Share of each score against temperature. At τ = {tau} the largest share is {largest}."
    ).format(tau=write(chosen), largest=write(max(now), 3))
    st.plotly_chart(figure, theme=None, key="softmax_warmth", config=CONFIG, alt=alt)
    entropy = -math.fsum(p * math.log(p) for p in now if p)
    facts = {
        "tau": write(chosen),
        "largest": write(max(now), 3),
        "entropy": write(entropy, 3),
        "even": write(math.log(len(scores)), 3),
        "n": len(scores),
    }
    st.markdown(prose("softmax/temperature_seen", **facts))


# --- derivatives ------------------------------------------------------------------------------


def derivatives(scores: Row, chosen: float) -> None:
    """The Jacobian as a heatmap: by autograd, by its formula, and their difference."""
    found = jacobian(scores, chosen)
    left, right = st.columns([3, 2], gap="large")
    with left:
        which = choice(_("Jacobian"), SHOWN, "softmax_jacobian", default="autograd")
        largest = STEEPEST if which != "difference" else None
        figure = heatmap(
            getattr(found, which),
            symbol="J",
            rows=subscripts(len(scores), "p"),
            cols=subscripts(len(scores)),
            row_title=_("share"),
            col_title=_("score"),
            largest=largest,
            numbers=len(scores) <= INKED,
            dark=dark(),
        )
        alt = _(
            "Jacobian of softmax, {n} by {n}, {how}. Largest entry {largest}, largest difference "
            "between formula and autograd {apart}."
        ).format(
            n=len(scores),
            how=_(SHOWN[which]),
            largest=write(found.steepest, 3),
            apart=write(found.apart, 2),
        )
        st.plotly_chart(figure, theme=None, key="softmax_heatmap", config=CONFIG, alt=alt)
    with right:
        rows = [
            [_("formula and autograd differ by"), write(found.apart, 2)],
            [_("largest derivative (at most 1/4)"), write(found.steepest)],
            [_("Frobenius norm"), write(found.norm)],
            [_("sum of a row, at most"), write(float(found.autograd.sum(-1).abs().max()), 2)],
        ]
        table("", [_("measured"), ""], rows)
        facts = {"tau": write(chosen), "inverse": write(1 / chosen)}
        st.markdown(prose("softmax/jacobian_seen", **facts))


def one_slope(scores: Row, chosen: float) -> None:
    """Share and derivative of one score that moves."""
    count = len(scores)
    at = {str(i + 1): name for i, name in enumerate(subscripts(count))}
    if st.session_state.get("softmax_moved") not in (None, *at):
        st.session_state["softmax_moved"] = "1"  # the score that was followed is no more
    which = int(choice(_("Score that moves"), at, "softmax_moved", default="1")) - 1
    divided = tuple(x / chosen for x in scores)
    found = slope(divided, which)
    share = taken_apart(divided).share[which]
    here = divided[which], share
    p = subscripts(count, "p")[which]
    title = at[str(which + 1)] + (" / τ" if chosen != 1 else "")
    words = (p, _("derivative of {p}").format(p=p), "1/4", _("now"))
    figure = slope_figure(found, at=here, names=words, title=title, dark=dark())
    alt = _(
        "{p} as {x} moves: it climbs from 0 to 1, steepest where it is one half. Now {share}, with "
        "derivative {derivative}."
    ).format(p=p, x=title, share=write(share, 3), derivative=write(share * (1 - share), 3))
    st.plotly_chart(figure, theme=None, key="softmax_slope", config=CONFIG, alt=alt)
    facts = {"p": p, "share": write(share, 3), "derivative": write(share * (1 - share), 3)}
    st.markdown(prose("softmax/slope_seen", **facts))


# --- number types -----------------------------------------------------------------------------


def types(scores: Row, chosen: float, added: float) -> None:
    """Each number type: where its exp gives out, and what becomes of these scores in it."""
    found = in_types(scores, chosen, added)
    left, right = st.columns(2, gap="large")
    head = [_("type"), _("largest number"), _("exp overflows from"), _("exp is 0 from")]
    table("", head, [_limits(each.limit) for each in found], place=left)
    head = [_("your scores"), _("exp straight away"), _("the largest taken off first")]
    bad = [i for i, each in enumerate(found) if each.parts.naive_breaks]
    table("", head, [_outcome(each) for each in found], bad=bad, place=right)


def _limits(limit: Limit) -> list[str]:
    ends = write(limit.breaks, 6), write(limit.vanishes, 4)
    return [limit.dtype, write(limit.largest, 3), *ends]


def _outcome(found: InType) -> list[str]:
    error = _("error {error}").format(error=write(found.error, 2))
    safe = error if math.isfinite(found.error) else _("a score is too large for this type")
    return [found.limit.dtype, _naive(found.parts), safe]


def _naive(parts: Parts) -> str:
    if parts.naive_breaks:
        shares = ", ".join(write(share, 2) for share in parts.naive_share[:3])
        return f"{_('breaks')}: {shares}" + ("…" if len(parts.naive_share) > 3 else "")
    return _("works")
