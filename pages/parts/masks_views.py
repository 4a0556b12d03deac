"""Pictures and tables of the masks page; everything is computed by core.experiments.masks."""

import math

import numpy as np
import pandas as pd
import streamlit as st

from core.experiments import masks
from core.figures.gallery import head_gallery
from core.manifest import manifest
from core.numbers import write
from parts import microscope
from parts.choice import choice, steps
from parts.masks_controls import KINDS, draw, drawn
from parts.step_view import notices
from parts.text import N_, _
from parts.traces import trace

WAYS = {
    "sdpa": N_("F.scaled_dot_product_attention"),
    "multihead": N_("nn.MultiheadAttention, weights asked for"),
    "multihead-fast": N_("nn.MultiheadAttention, need_weights=False"),
    "softmax": N_("softmax of a row of −∞"),
    "fill": N_("softmax of a row of −1e9"),
    "ours": N_("this program"),
}
RULES = {
    "top-left": N_("top-left: SDPA's is_causal=True over the whole cache"),
    "bottom-right": N_("bottom-right: the last query sees every key"),
    "past": N_("j ≤ i + past: what was meant"),
}


def _dark() -> bool:
    return st.context.theme.type == "dark"


def composed(config) -> None:
    """Each mask alone, and what all of them leave."""
    sample = 0
    if config.B and config.B > 1:
        names = {str(b): str(b + 1) for b in range(config.B)}
        sample = int(choice(_("Batch item"), names, "masks_sample", default="0"))
    found = masks.parts(config, sample)
    titles = [_(KINDS[name]) if name in KINDS else _("all together") for name in found]
    stacked = np.stack([mask.numpy().astype(float) for mask in found.values()])
    figure = head_gallery(stacked, titles=titles, dark=_dark())
    alt = _("Masks: rows are queries, columns are keys, filled cells are visible")
    st.plotly_chart(figure, theme=None, key="masks_parts", alt=alt)
    seen = int(found["all"].sum())
    st.caption(
        _("{seen} of {all} pairs are visible. Rows are queries, columns are keys.").format(
            seen=seen, all=config.S * config.T
        )
    )


def drawing(config) -> None:
    """The grid to draw in, if that was chosen."""
    if "drawn" not in st.session_state.get("masks_kinds", ()):
        return
    seen = np.ones((config.S, config.T), dtype=bool)
    for i, j in config.hidden:
        seen[i, j] = False
    st.caption(_("Ticked: this query (row) may see this key (column)."))
    key = f"masks_grid_{config.S}_{hash(config.hidden)}"
    frame = pd.DataFrame(seen, columns=[str(j) for j in range(config.T)])
    st.data_editor(frame, key=key, on_change=lambda: _take(st.session_state[key]))
    st.button(_("Show every key again"), on_click=lambda: draw(()), disabled=not drawn())


def _take(changes) -> None:
    hidden = set(drawn())
    for row, cells in changes["edited_rows"].items():
        for column, ticked in cells.items():
            pair = (int(row), int(column))
            hidden = hidden - {pair} if ticked else hidden | {pair}
    draw(hidden)


def at_work(config) -> None:
    """The computation under the mask, in the microscope, opened where the mask strikes."""
    computed = trace(config)
    notices(computed)
    described, values = manifest(computed)
    dims = {n: facts | {"name": _(facts["name"])} for n, facts in described["dims"].items()}
    start = list(computed).index("masked" if "masked" in computed else "weights")
    microscope.show(described | {"dims": dims}, values, key="masks_microscope", step=start)
    with st.expander(_("The script, to read")):
        st.code(computed.source(), language="python")


def polarity(config) -> None:
    """The composed mask as each PyTorch function wants it."""
    forms = masks.polarities(masks.parts(config)["all"])
    names = {
        # It may break after the underscore: a third of a page is narrower than this name.
        "sdpa": "F.scaled_dot_product_\u200battention · bool",
        "multihead": "nn.MultiheadAttention · bool",
        "float": _("both · float, added"),
    }
    for column, (name, mask) in zip(st.columns(3), forms.items(), strict=True):
        column.markdown(f"**{names[name]}**")
        column.code(_matrix(mask), language=None)
    st.code("theirs = ~ours  # nn.MultiheadAttention: True = hidden", language="python")


def _matrix(mask) -> str:
    words = {True: "T", False: "F"}
    if mask.dtype.is_floating_point:
        return "\n".join(" ".join(f"{write(x):>2}" for x in row) for row in mask.tolist())
    return "\n".join(" ".join(words[x] for x in row) for row in mask.tolist())


def fill() -> None:
    """A low visible score against a hidden key, in two data types."""
    low = st.number_input(
        _("Score of the visible key"), -1e10, 0.0, -2e9, 1e8, format="%.3g", key="masks_low",
        bind="query-params", width=240,
    )  # fmt: skip
    rows = []
    for dtype, outcomes in masks.fills(low).items():
        for one in outcomes:
            shares = ", ".join(write(x) for x in one.weights)
            verdict = _("refused by torch") if one.refused else _verdict(one)
            rows.append(
                {
                    _("Data type"): dtype,
                    _("Hidden becomes"): one.way.replace("-", "−").replace("inf", "∞"),
                    _("weights of (visible, hidden)"): shares or one.refused,
                    _("Verdict"): verdict,
                }
            )
    st.table(pd.DataFrame(rows).set_index(_("Data type")))
    st.code(
        "scores = torch.tensor([[low, 0.0]])  # key 0 visible, key 1 hidden\n"
        "hidden = torch.tensor([[False, True]])\n"
        "scores.masked_fill(hidden, -1e9).softmax(-1)        # the hidden key can win\n"
        "scores.masked_fill(hidden, -torch.inf).softmax(-1)  # it never can",
        language="python",
    )


def _verdict(one) -> str:
    return _("the hidden key is read") if one.weights[1] > 0 else _("right")


def blind_query() -> None:
    """What six ways make of one query without a visible key."""
    T = steps(_("T, hidden keys"), tuple(range(2, 9)), "masks_T", default=4)
    rows = [
        {
            _("Way"): _(WAYS[one.way]),
            _("Weights"): ", ".join(write(x) for x in one.weights) or "–",
            _("Output"): ", ".join(write(x) for x in one.output),
            _("Verdict"): _judged(one, T),
        }
        for one in masks.blind(T)
    ]
    st.table(pd.DataFrame(rows).set_index(_("Way")))
    _code("blind")


def _judged(one, T) -> str:
    if any(map(math.isnan, one.output)):
        return _("NaN, which spreads to every later layer")
    if one.weights and one.weights[0] > 0:
        return _("1 / {T} each: reads what it must not see").format(T=T)
    return _("0: nothing was read")


def past() -> None:
    """New queries behind a cache: three rules, and how many keys each query sees."""
    left, right = st.columns(2, gap="large")
    S = steps(_("S, new queries"), (1, 2, 3, 4), "masks_new", default=2, place=left)
    before = steps(_("past, cached keys"), tuple(range(1, 9)), "masks_past", default=3, place=right)
    found = masks.aligned(S, before)
    stacked = np.stack([mask.numpy().astype(float) for mask in found.values()])
    figure = head_gallery(stacked, titles=list(found), dark=_dark())
    alt = _("Masks: rows are queries, columns are keys, filled cells are visible")
    st.plotly_chart(figure, theme=None, key="masks_aligned", alt=alt)
    for rule, seen in found.items():
        counts = ", ".join(map(str, seen.sum(-1).tolist()))
        st.markdown(f"- {_(RULES[rule])}: {_('keys seen')} {counts}")
    _code("aligned")


def _code(name: str) -> None:
    with st.expander(_("The code that was just run")):
        st.code(masks.script(name), language="python")
