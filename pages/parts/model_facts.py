"""What each head does, as a table to sort, filter and download; and what that says."""

from __future__ import annotations

from functools import lru_cache

import pandas as pd
import streamlit as st

from core import models
from core.models import facts as measured
from core.models.symptoms import diagnose
from parts.choice import choices
from parts.model_heads import open_head
from parts.state import write_url
from parts.text import N_, _, language, prose

FLAGS = {
    "uniform": N_("near-uniform"),
    "one_hot": N_("near-one-hot"),
    "sink": N_("rests on the first or special tokens"),
    "twin": N_("does the same as another"),
}
KINDS = {"self": N_("self"), "encoder": N_("encoder"), "decoder": N_("decoder"),
         "cross": N_("cross")}  # fmt: skip
SHARES = {
    "entropy": N_("entropy / its maximum"),
    "largest": N_("largest weight"),
    "first": N_("on the first token"),
    "special": N_("on special tokens"),
    "itself": N_("on itself"),
    "previous": N_("on the previous token"),
    "following": N_("on the next token"),
}
NAMED = 12  # heads named in a finding


def table(reading: models.Reading) -> None:
    """The measured facts; a chosen row opens that head."""
    st.markdown(
        prose("model/facts", uniform=measured.UNIFORM, one_hot=measured.ONE_HOT,
              sink=f"{measured.SINK:.0%}", twin=f"{measured.TWIN:.0%}")
    )  # fmt: skip
    flags = choices(_("Only heads that are"), FLAGS, "model_flags")
    every = [(c, i) for c, heads in enumerate(reading.facts) for i in range(len(heads))]
    fits = _range()
    listed = [
        (c, i) for c, i in every
        if all(getattr(reading.facts[c][i], flag) for flag in flags) and fits(reading.facts[c][i])
    ]  # fmt: skip
    whole = _frame(reading, language())
    st.caption(_("{shown} of {total} heads").format(shown=len(listed), total=len(whole)))
    if listed:
        config = {
            _(label): st.column_config.NumberColumn(format="%.3f") for label in SHARES.values()
        }
        # A selection names rows by their number: for other rows it is another table.
        key = f"model_table_{hash((id(reading), tuple(listed)))}"
        st.dataframe(
            whole.loc[[every.index(at) for at in listed]],
            hide_index=True,
            height=min(36 * (len(listed) + 1) + 3, 380),
            column_config=config,
            key=key,
            on_select=lambda: _follow(key, listed, reading),
            selection_mode="single-row",
            alt=_("Facts of each head"),
        )
    st.download_button(
        _("All heads as CSV"),
        lambda: whole.to_csv(index=False),
        "heads.csv",
        "text/csv",
        icon=":material/table:",
        on_click="ignore",
    )


def _range():
    """A fact to filter by and its least and largest value; what tells whether a head fits."""
    left, right = st.columns([2, 3], gap="large")
    linked = st.query_params.get("model_by", "").split(",")
    if "model_by" not in st.session_state:
        st.session_state["model_by"] = linked[0] if linked[0] in SHARES else ""
        st.session_state["model_range"] = _limits(linked[1:])
    labels = {"": _("all")} | {name: _(label) for name, label in SHARES.items()}
    with left:
        name = st.selectbox(_("Filter by"), list(labels), key="model_by", format_func=labels.get)
    if not name:
        write_url(("model_by",), {})
        return lambda facts: True
    st.session_state.setdefault("model_range", (0.0, 1.0))
    with right:
        low, high = st.slider(labels[name], 0.0, 1.0, step=0.01, key="model_range")
    write_url(("model_by",), {"model_by": f"{name},{low:g},{high:g}"})
    # A share of 1 comes out of the sum as 1.0000001 now and then.
    return lambda facts: low <= min(_or_none(getattr(facts, name)), 1.0) <= high


def _or_none(number: float | None) -> float:
    """A number that fits no range where there is none."""
    return -1.0 if number is None else number


def _limits(texts: list[str]) -> tuple[float, float]:
    """The range in a link, the whole one if it cannot be read.

    >>> _limits(["0.2", "0.5"]), _limits(["x"])
    ((0.2, 0.5), (0.0, 1.0))
    """
    try:
        low, high = (min(max(float(text), 0.0), 1.0) for text in texts)
    except ValueError:
        return 0.0, 1.0
    return (low, high) if low <= high else (0.0, 1.0)


def _follow(key: str, listed, reading) -> None:
    """Open the head of a newly chosen row; the sliders may go elsewhere afterwards."""
    rows = st.session_state[key]["selection"]["rows"]
    if rows and rows[0] < len(listed):
        open_head(*listed[rows[0]], reading)


@lru_cache(maxsize=4)
def _frame(reading: models.Reading, tongue: str) -> pd.DataFrame:
    """All facts of all heads, a row each, with headings in the reader's language."""
    rows = []
    several = len({call.kind for call in reading.calls}) > 1
    kinds, shares, flags = (
        {name: _(label) for name, label in table.items()} for table in (KINDS, SHARES, FLAGS)
    )
    first, second, same, marked = _("layer"), _("head"), _("does the same as"), _("flags")
    for call, heads in zip(reading.calls, reading.facts, strict=True):
        for i, facts in enumerate(heads):
            row = {_("attention"): kinds[call.kind]} if several else {}
            row |= {first: call.layer + 1, second: i + 1}
            row |= {label: getattr(facts, name) for name, label in shares.items()}
            row[same] = name_of(reading, facts.twin) if facts.twin else ""
            row[marked] = ", ".join(label for flag, label in flags.items() if getattr(facts, flag))
            rows.append(row)
    return pd.DataFrame(rows)


def name_of(reading: models.Reading, at: tuple[int, int]) -> str:
    """A head as layer.head, both from 1; with its attention where a model has several."""
    call = reading.calls[at[0]]
    kind = "" if call.kind == "self" else f"{_(KINDS[call.kind])} "
    return f"{kind}{call.layer + 1}.{at[1] + 1}"


@lru_cache(maxsize=4)
def _found(reading):
    return diagnose(reading)


def findings(reading: models.Reading) -> None:
    """Symptoms, the heads they rest on, and what to look at."""
    for finding in _found(reading):
        named = ", ".join(name_of(reading, at) for at in finding.heads[:NAMED])
        if len(finding.heads) > NAMED:
            named += _(", and {count} more").format(count=len(finding.heads) - NAMED)
        st.markdown(prose(f"model/{finding.id}", heads=named, **finding.numbers))
