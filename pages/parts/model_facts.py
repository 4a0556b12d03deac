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
from parts.text import N_, _, prose

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
    listed = [
        (c, i)
        for c, heads in enumerate(reading.facts)
        for i, facts in enumerate(heads)
        if all(getattr(facts, flag) for flag in flags)
    ]
    shown = _frame(reading, listed)
    total = sum(map(len, reading.facts))
    st.caption(_("{shown} of {total} heads").format(shown=len(listed), total=total))
    if listed:
        config = {
            _(label): st.column_config.NumberColumn(format="%.3f") for label in SHARES.values()
        }
        chosen = st.dataframe(
            shown,
            hide_index=True,
            height=min(36 * (len(listed) + 1) + 3, 380),
            column_config=config,
            key=f"model_table_{'_'.join(flags)}",
            on_select="rerun",
            selection_mode="single-row",
            alt=_("Facts of each head"),
        )
        _follow(chosen, listed, reading)
    st.download_button(
        _("All heads as CSV"),
        lambda: _frame(reading, None).to_csv(index=False),
        "heads.csv",
        "text/csv",
        icon=":material/table:",
        on_click="ignore",
    )


def _follow(chosen, listed, reading) -> None:
    """Open the head of a newly chosen row; the sliders may go elsewhere afterwards."""
    rows = chosen["selection"]["rows"] if chosen else []
    at = listed[rows[0]] if rows and rows[0] < len(listed) else None
    if at != st.session_state.get("model_row"):
        st.session_state["model_row"] = at
        if at:
            open_head(*at, reading)
            st.rerun()


def _frame(reading: models.Reading, listed) -> pd.DataFrame:
    rows = []
    every = [(c, i) for c, heads in enumerate(reading.facts) for i in range(len(heads))]
    several = len({call.kind for call in reading.calls}) > 1
    kinds, shares, flags = (
        {name: _(label) for name, label in table.items()} for table in (KINDS, SHARES, FLAGS)
    )
    first, second, same, marked = _("layer"), _("head"), _("does the same as"), _("flags")
    for c, i in every if listed is None else listed:
        call, facts = reading.calls[c], reading.facts[c][i]
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
