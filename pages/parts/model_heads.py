"""The heads of a reading: all of them on one sheet, one layer, and one head in the microscope."""

from __future__ import annotations

from functools import lru_cache
from html import escape

import streamlit as st

from core import Trace, models
from core.figures import STILL
from core.figures.head_map import head_map, layer_map
from core.manifest import manifest
from parts import microscope
from parts.choice import choice, steps
from parts.model_sharing import take_along
from parts.step_view import cell_text, cost_text, notices, shape_table, step_text
from parts.tables import table, table_style
from parts.text import ASSETS, N_, _, prose
from parts.view import View

KINDS = {
    "encoder": N_("encoder: the text looks at itself"),
    "decoder": N_("decoder: the answer looks at itself"),
    "cross": N_("cross: the answer looks at the text"),
}
MARKED = 128  # queries or keys up to which a layer is drawn again to mark the chosen head
STARTS = {"qkv": N_("from Q, K and V"), "inputs": N_("from X and W")}


def tokens(reading: models.Reading) -> None:
    """The tokens as typed, numbered; each one's raw form in its title and in a table."""
    table_style()
    st.html(ASSETS / "model/model.css")
    rows = [(_("Tokens"), reading.tokens)]
    rows += [(_("Tokens of the answer"), reading.targets)] if reading.targets else []
    for label, listed in rows:
        inner = "".join(_token(place, token) for place, token in enumerate(listed, 1))
        name = f"{label}: {len(listed)}"
        st.caption(name)
        st.html(
            f'<div class="tokens" role="region" tabindex="0" aria-label="{escape(name)}">'
            f"{inner}</div>"
        )
    with st.expander(_("Tokens and how the tokenizer writes them")):
        for label, listed in rows:
            body = [(str(i), t.label, t.raw, str(t.id)) for i, t in enumerate(listed, 1)]
            table(label, ("", _("as typed"), _("raw"), _("number in the vocabulary")), body)


def _token(place: int, token: models.Token) -> str:
    kind = "special" if token.special else "unknown" if token.unknown else ""
    mark = f' class="{kind}"' if kind else ""
    number = f"<small>{place}</small>"
    return f'<span{mark} title="{escape(token.raw)}">{escape(token.label)}{number}</span>'


# --- which head -------------------------------------------------------------------------------


def calls_of(reading: models.Reading, kind: str) -> list[int]:
    """The calls of a kind, by layer."""
    return [c for c, call in enumerate(reading.calls) if call.kind == kind]


def asked_kind(reading: models.Reading) -> str:
    """Which of a model's attentions; there is a choice only where it has several."""
    present = {name: label for name, label in KINDS.items() if calls_of(reading, name)}
    if len(present) < 2:
        return reading.calls[0].kind
    first = next(iter(present))
    return choice(_("Which attention"), present, "model_kind", default=first)


def asked_head(reading: models.Reading, kind: str) -> tuple[int, int]:
    """The call and head that are looked at."""
    listed = calls_of(reading, kind)
    left, right = st.columns(2, gap="large")
    layer = _counted(_("Layer"), len(listed), "model_layer", left)
    call = listed[layer - 1]
    head = _counted(_("Head"), reading.calls[call].heads, "model_head", right)
    return call, head - 1


def _counted(label: str, count: int, key: str, place) -> int:
    """A number from 1 to `count`; one that was chosen for a larger model is forgotten."""
    if st.session_state.get(key, 1) > count:
        st.session_state[key] = 1
    if count == 1:
        return 1
    return steps(label, range(1, count + 1), key, default=1, place=place)


def open_head(call: int, head: int, reading: models.Reading) -> None:
    """Look at a head from the next run on."""
    kind = reading.calls[call].kind
    st.session_state["model_layer"] = calls_of(reading, kind).index(call) + 1
    st.session_state["model_head"] = head + 1
    if kind in KINDS:
        st.session_state["model_kind"] = kind


# --- pictures ---------------------------------------------------------------------------------


def sheet(reading: models.Reading, kind: str, current: tuple[int, int]) -> None:
    """All heads of a kind, layers down, heads across."""
    listed = calls_of(reading, kind)
    dark = st.context.theme.type == "dark"
    words = (_("layer"), _("head"), _("weight"))
    figure = _sheet(reading, tuple(listed), (listed.index(current[0]), current[1]), words, dark)
    said = _("Weights of all heads: {layers} layers down, {heads} heads across").format(
        layers=len(listed), heads=max(reading.calls[c].heads for c in listed)
    )
    st.plotly_chart(figure, theme=None, config=STILL, key="model_sheet", alt=said)


@lru_cache(maxsize=4)
def _sheet(reading, listed, current, words, dark):
    text = dict(zip(("layer", "head", "weight"), words, strict=True))
    return head_map([reading.thumbs[c] for c in listed], current=current, text=text, dark=dark)


def layer(reading: models.Reading, current: tuple[int, int]) -> None:
    """The heads of one layer, larger."""
    call, head = current
    names = [[token.label for token in side] for side in reading.sides(call)]
    titles = tuple(
        _("Head {number}").format(number=i + 1) for i in range(reading.calls[call].heads)
    )
    words = (_("queries"), _("keys"))
    dark = st.context.theme.type == "dark"
    # A long text takes half a second to be reduced: not again for another mark on one of the heads.
    marked = head if max(map(len, names)) <= MARKED else None
    figure = _layer(reading, call, marked, tuple(map(tuple, names)), titles, words, dark)
    said = _("Weights of {h} heads as heatmaps: queries down, keys across").format(h=len(titles))
    st.plotly_chart(figure, theme=None, config=STILL, key="model_layer_heads", alt=said)


@lru_cache(maxsize=4)
def _layer(reading, call, head, names, titles, words, dark):
    return layer_map(
        reading.weights(call),
        titles=titles,
        rows=names[0],
        cols=names[1],
        row_title=words[0],
        col_title=words[1],
        current=head,
        dark=dark,
    )


# --- one head ---------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def _traced(reading, call, head, start) -> Trace | None:
    watched = reading.calls[call]
    return watched.head_from_inputs(head) if start == "inputs" else watched.head(head)


@lru_cache(maxsize=4)
def _described(reading, call, head, start):
    asking, asked = ([token.label for token in side] for side in reading.sides(call))
    watched, trace = reading.calls[call], _traced(reading, call, head, start)
    labels = {"S": asking, "T": asked}
    if start == "inputs" and watched.inputs.biased:
        wide = trace.sizes["H"]
        labels["H"] = [*(f"H {i}" for i in range(1, wide)), "1"]
    return manifest(trace, labels=labels)


def _about(call: models.Call) -> str:
    """What this attention does beyond softmax(QKᵀ): its module, scale, cap, masks."""
    said = [f"`{call.name}`", _("scale {number}").format(number=f"{call.scale:.4g}")]
    if call.softcap:
        said.append(_("softcap {number}").format(number=f"{call.softcap:g}"))
    if call.window:
        said.append(_("window of {number} tokens").format(number=call.window))
    if call.bias is not None:
        said.append(_("a position bias is added"))
    if call.causal or call.seen is not None:
        said.append(_("some pairs are masked"))
    return " · ".join(said)


BETWEEN = {
    "Q_normed": N_("it evens out the length of each row (RMS norm)"),
    "Q_rotated": N_("it turns them by their position (rotary)"),
}


def _in_between(trace: Trace) -> None:
    """What the model does to Q and K after X·W, if anything."""
    done = [_(said) for symbol, said in BETWEEN.items() if symbol in trace]
    if done:
        st.markdown(prose("model/in_between", what=_(", then ").join(done)))


@st.fragment
def one_head(reading: models.Reading, current: tuple[int, int]) -> None:
    """The microscope on one head's computation, from X and W where that is what was computed."""
    call, head = current
    watched = reading.calls[call]
    start = "qkv"
    if _traced(reading, call, head, "inputs") is not None:
        start = choice(_("Begin"), STARTS, "model_from", default="qkv")
        if start == "inputs":
            H = watched.inputs.asked.shape[-1]
            st.markdown(
                prose("model/from_x_bias" if watched.inputs.biased else "model/from_x", H=H)
            )
            _in_between(_traced(reading, call, head, start))
    else:
        st.markdown(prose("model/from_qkv"))
    st.caption(_about(watched))
    if watched.kv_heads != watched.heads:
        shared = head // (watched.heads // watched.kv_heads) + 1
        st.caption(_("Query head {h} reads key/value head {g}.").format(h=head + 1, g=shared))
    plain, values = _described(reading, call, head, start)
    dims = {name: facts | {"name": _(facts["name"])} for name, facts in plain["dims"].items()}
    view = View.of(_traced(reading, call, head, start))
    notices(view.trace)
    microscope.show(
        plain | {"dims": dims}, values, key="model_microscope", step=view.place, cell=view.cell,
        on_change=view.take,
    )  # fmt: skip
    view.write_url()
    left, right = st.columns([5, 4], gap="medium")
    with left:
        step_text(view.trace, view.step)
        cost_text(view.step)
        cell_text(view.trace, view.cell)
    with right:
        shape_table(view.trace, view.step)
    title = _("Layer {layer}, head {head}, step by step")
    title = title.format(layer=watched.layer + 1, head=head + 1)
    take_along(view.trace, plain["labels"], title)
