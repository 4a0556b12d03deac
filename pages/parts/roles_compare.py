"""Scores of x·x beside those of q·k, the shared matrix, and the row that is beaten."""

import streamlit as st

from core import AttentionConfig
from core.experiments import roles
from core.figures import CONFIG, Points, heatmap, space
from core.numbers import write
from parts.heads_tables import show, table
from parts.roles_controls import KEPT, names
from parts.state import escaped
from parts.text import N_, _, prose

LABELS = {
    "direct": N_("x·x"),
    "shared": N_("W_Q = W_K"),
    "equal": N_("W_Q = W_K, keys of equal length"),
    "separate": N_("W_Q ≠ W_K"),
}
PLAIN = CONFIG | {"displayModeBar": False}  # on a phone its buttons would cover the titles


def dark() -> bool:
    return st.context.theme.type == "dark"


def compare(config: AttentionConfig) -> None:
    """Both matrices of scores side by side, and what is measured on them."""
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown(prose("roles/direct", **_pair(config, "direct")))
        _scores(config, "direct")
    with right:
        st.markdown(prose("roles/separate", **_pair(config, "separate")))
        _scores(config, "separate")
    show(_measures(config))
    found = {way: roles.measure(roles.scores(config, way)) for way in ("direct", "separate")}
    counted = roles.census(config)
    facts = {
        "direct": found["direct"].own,
        "separate": found["separate"].own,
        "rows": config.S,
        "asymmetry": write(found["separate"].asymmetry, 3),
        "mean": write(counted["separate"].asymmetry, 3),
        "predicted": write(roles.predicted_asymmetry(config), 3),
        "own": write(100 * counted["separate"].own, 3),
        "chance": write(100 / config.S, 3),
        "draws": f"{roles.DRAWS:,}",
    }
    st.markdown(prose("roles/measured", **facts))


def _pair(config: AttentionConfig, way: str) -> dict[str, str]:
    """What two tokens score with each other, there and back."""
    tokens, matrix = names(config), roles.scores(config, way)
    one, other = int(config.S > 2), config.S - 1
    return {
        "one": escaped(tokens[one]),
        "other": escaped(tokens[other]),
        "there": write(float(matrix[one, other]), 3),
        "back": write(float(matrix[other, one]), 3),
    }


def _scores(config: AttentionConfig, way: str) -> None:
    matrix, tokens = roles.scores(config, way), names(config)
    found = roles.measure(matrix)
    figure = heatmap(
        matrix,
        symbol="x·x" if way == "direct" else "q·k",
        rows=tokens,
        cols=tokens,
        row_title=_("asks"),
        col_title=_("is asked"),
        dark=dark(),
    )
    alt = _(
        "Scores of {way}: asymmetry {asymmetry}, {own} of {rows} rows have their largest score at "
        "their own position."
    ).format(way=_(LABELS[way]), asymmetry=write(found.asymmetry, 3), own=found.own,
             rows=found.rows)  # fmt: skip
    st.plotly_chart(figure, theme=None, key=f"roles_scores_{way}", config=PLAIN, alt=alt)


def _measures(config: AttentionConfig) -> str:
    """Symmetry and self-preference of all ways: for this seed, and over many draws of W."""
    found = [roles.measure(roles.scores(config, way)) for way in roles.WAYS]
    many = [roles.census(config)[way] for way in roles.WAYS]
    rows = [
        (_("‖S − Sᵀ‖ / ‖S‖"), [write(one.asymmetry, 3) for one in found]),
        (_("rows that prefer themselves"), [f"{one.own} / {one.rows}" for one in found]),
        (_("asymmetry, many draws"), [write(each.asymmetry, 3) for each in many]),
        (_("such rows, many draws"), [f"{100 * each.own:.1f} %" for each in many]),
        (_("draws in which all do"), [f"{each.every:,} / {each.draws:,}" for each in many]),
    ]
    rows[-1][1][0] = ""  # x·x has no weights to draw
    head = ("", *(_(LABELS[way]) for way in roles.WAYS))
    return table(_("Symmetry and self-preference"), head, rows, name="measures")


# --- one matrix for query and key -------------------------------------------------------------


def one_matrix(config: AttentionConfig) -> None:
    """The claim about a shared W, its verdict, and the smallest counterexample."""
    st.markdown(prose("roles/claim"))
    equal = st.toggle(_("Give all keys the same length"), key="roles_equal", **KEPT)
    way = "equal" if equal else "shared"
    found, many = roles.measure(roles.scores(config, way)), roles.census(config)[way]
    facts = {"own": found.own, "rows": found.rows, "every": f"{many.every:,}"}
    facts |= {"draws": f"{many.draws:,}", "asymmetry": write(found.asymmetry, 3)}
    holds = many.every == many.draws
    verdict = st.success if holds else st.warning
    icon = ":material/check:" if holds else ":material/close:"
    name = "holds" if equal and holds else "always" if holds else "fails"
    verdict(prose(f"roles/verdict_{name}", **facts), icon=icon)
    left, right = st.columns(2, gap="large")
    with left:
        _scores(config, way)
    with right:
        _duel(equal)


def _duel(equal: bool) -> None:
    st.markdown(prose("roles/duel"))
    length = st.slider(_("Length of x₂"), 0.1, 3.0, 2.0, 0.1, key="roles_length", **KEPT)
    angle = st.slider(_("Angle between x₁ and x₂, in degrees"), 0, 180, 20, 5,
                      key="roles_angle", **KEPT)  # fmt: skip
    found = roles.duel(length, float(angle))
    x = roles.rows_of_duel(length, float(angle)).tolist()
    figure = space(
        [Points("x₁", x[:1], ["x₁"], arrows=True), Points("x₂", x[1:], ["x₂"], arrows=True)],
        dark=dark(),
        height=260,
    )
    other = found.equal_other if equal else found.other
    facts = {"own": write(found.own, 3), "other": write(other, 3), "length": write(length, 3)}
    facts |= {"angle": angle, "length_used": "1" if equal else write(length, 3)}
    alt = _("Two arrows: x₁ of length 1, x₂ of length {length}, {angle} degrees apart.")
    st.plotly_chart(figure, theme=None, key="roles_duel", config=PLAIN, alt=alt.format(**facts))
    beaten = other > found.own + roles.SAME
    st.markdown(prose(f"roles/duel_{'beaten' if beaten else 'kept'}", **facts))
