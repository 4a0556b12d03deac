"""What the scaling page can be asked: how entries are drawn, how many, how they are divided."""

from dataclasses import asdict

import streamlit as st

from core.experiments.scaling import COUNTS, Entries, Pairs, Rows
from parts.choice import choice, choices, steps
from parts.text import N_, _

SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 80, 96, 128, 192, 256, 384, 512, 768, 1024)
LENGTHS = (4, 8, 16, 32, 64, 128)
QUERIES = (16, 32, 64)
DISTRIBUTIONS = {
    "normal": N_("normal"),
    "uniform": N_("uniform"),
    "rademacher": N_("±1"),
    "laplace": N_("Laplace"),
}
BROKEN = {
    "variance": N_("variance not 1"),
    "mean": N_("mean not 0"),
    "within": N_("entries of a vector correlated"),
    "across": N_("q and k correlated"),
}
# label, smallest, largest, at first, step: at first each is clearly broken.
SLIDERS = {
    "variance": (N_("Variance σ² of each entry"), 0.1, 9.0, 4.0, 0.1),
    "mean": (N_("Mean μ of each entry"), -2.0, 2.0, 1.0, 0.1),
    "within": (N_("Correlation ρ of two entries of a vector"), 0.0, 0.95, 0.5, 0.05),
    "across": (N_("Correlation τ of an entry of q with that of k"), -0.95, 0.95, 0.5, 0.05),
}
STATISTICS = {"median": N_("median row"), "mean": N_("mean over rows")}


def written(number: int) -> str:
    """A whole number with commas between its thousands."""
    return f"{number:,}"


def pairs() -> Pairs:
    """The controls of the sample; returns what they ask for."""
    left, right = st.columns(2, gap="large")
    with left:
        d_k = steps(_("d_k, width of query and key"), SIZES, "scaling_d_k", default=64)
        distribution = choice(
            _("Distribution of the entries"), DISTRIBUTIONS, "scaling_draw", default="normal"
        )
    with right:
        count = steps(_("Pairs of a query and a key"), COUNTS, "scaling_pairs", default=10_000)
        seed = st.number_input(
            _("Seed"), 0, 2**31 - 1, 0, 1, key="scaling_seed", bind="query-params", width=200
        )
    return Pairs(Entries(distribution, **_broken()), d_k, count, seed)


def _broken() -> dict[str, float]:
    """The assumptions that are switched off, each with its own slider."""
    broken = choices(
        _("Break an assumption"),
        BROKEN,
        "scaling_broken",
        help=_("The claim assumes independent entries with mean 0 and variance 1."),
    )
    if not broken:
        return {}
    values = {}
    for name, column in zip(broken, st.columns(max(2, len(broken))), strict=False):
        label, least, most, first, step = SLIDERS[name]
        values[name] = column.slider(
            _(label), least, most, first, step, key=f"scaling_{name}", bind="query-params"
        )
    return values


def rows(sampled: Pairs) -> tuple[Rows, float]:
    """The controls of the rows of scores: how long, how many, one's own divisor."""
    left, middle, right = st.columns(3, gap="large")
    T = steps(_("T, keys per query"), LENGTHS, "scaling_T", default=32, place=left)
    count = steps(_("Queries to average over"), QUERIES, "scaling_rows", default=32, place=middle)
    own = right.number_input(
        _("Your own temperature τ"),
        0.1,
        1000.0,
        8.0,
        0.5,
        key="scaling_temperature",
        bind="query-params",
        help=_("The scores are divided by τ instead of √d_k, whatever d_k is."),
    )
    return Rows(sampled.entries, T, count, sampled.seed), own


def statistic() -> str:
    """Whether curves show the median row or the mean."""
    return choice(_("Curves show the"), STATISTICS, "scaling_shows", default="median")


def broken_names(entries: Entries) -> list[str]:
    """The assumptions that these entries break."""
    usual = asdict(Entries(entries.distribution))
    return [name for name in BROKEN if getattr(entries, name) != usual[name]]
