"""The sidebar's controls of one attention computation. Each shows the configuration and changes it.

A control is one call of `_control`: its key, the field it sets, and what it shows now.
"""

import streamlit as st

from core import PRESETS, AttentionConfig
from core.config import DTYPES
from core.inputs import split_sentence
from parts.state import change, complain, config, put, undo
from parts.text import _, prose

SIZES = (*range(1, 17), 20, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
LONGEST = 64  # tokens of a typed sentence
SENTENCE = {"en": "the cat sat on the mat", "zh": "猫坐在垫子上"}

PRESET_LABELS = {
    "example": "4 × 6 example",
    "two-heads": "Example, two heads",
    "causal": "Example, causal",
    "grouped": "Grouped queries",
    "rotary": "Rotary positions",
    "cross": "Cross-attention",
    "transformer": "First Transformer",
    "bert-base": "BERT-base",
    "gpt2-small": "GPT-2 small",
}
ROTARY = {"": "none", "halves": "halves", "interleaved": "neighbours"}
INPUTS = {"example": "Example", "sentence": "Sentence", "seeded": "Random"}


def controls() -> AttentionConfig:
    """Draw all controls in the sidebar; returns the configuration they now describe."""
    chosen = config()
    with st.sidebar:
        _start(chosen)
        _rows(chosen)
        _sizes(chosen)
        _choices(chosen)
        more = st.expander(_("More settings"), key="more", on_change="rerun")
        if more.open:  # closed, its eight widgets cost nothing
            with more:
                _fine(chosen)
    return chosen


def _named(labels: dict) -> dict:
    """Labels in the reader's language."""
    return {value: _(label) for value, label in labels.items()}


def _set(key, value):
    """Let the widget `key` show `value`: the configuration is the truth, the widget its picture."""
    if st.session_state.get(key) != value:
        st.session_state[key] = value
    return key


def _take(key, field, convert=lambda value: value):
    """A callback that changes `field` to what the widget `key` now says."""

    def taken():
        change(field, **{field: convert(st.session_state[key])} | _leaving_example(field))

    return taken


def _leaving_example(field) -> dict:
    """The example has fixed sizes: choosing others leaves it for seeded rows."""
    fixed = field in ("S", "T", "H", "B", "cross") and config().x == "example"
    return {"x": "seeded"} if fixed else {}


# --- where to start ---------------------------------------------------------------------------


def _start(chosen):
    names = {preset: name for name, preset in PRESETS.items()}
    listed = ["", *PRESETS] if chosen not in names else list(PRESETS)
    st.selectbox(
        _("Start from"),
        listed,
        key=_set("w_preset", names.get(chosen, "")),
        format_func=(_named(PRESET_LABELS) | {"": _("your own settings")}).get,
        on_change=lambda: _start_from(st.session_state["w_preset"]),
    )
    left, right = st.columns(2)
    left.button(
        _("Undo"),
        icon=":material/undo:",
        width="stretch",
        disabled=not st.session_state["past"],
        on_click=undo,
        key="w_undo",
    )
    right.button(
        _("Reset"),
        icon=":material/restart_alt:",
        width="stretch",
        disabled=chosen == PRESETS["example"],
        on_click=lambda: put(PRESETS["example"]),
        key="w_reset",
        help=_("Back to the opening example. Undo brings your settings back."),
    )
    complain("link", "preset")


def _start_from(name):
    if name:
        put(PRESETS[name])


# --- rows of X and Y --------------------------------------------------------------------------


def _rows(chosen):
    kind = "sentence" if chosen.tokens else chosen.x
    st.segmented_control(
        _("Rows of X"),
        list(INPUTS),
        key=_set("w_input", kind),
        format_func=_named(INPUTS).get,
        on_change=lambda: _choose_rows(st.session_state["w_input"]),
        required=True,
        width="stretch",
    )
    if kind == "sentence":
        _sentence("tokens", _("Your sentence"), chosen)
        if chosen.cross:
            _sentence("targets", _("Target sentence (asks)"), chosen)
    complain("x", "tokens", "targets")


def _choose_rows(kind):
    if kind == "sentence":
        text = SENTENCE[st.session_state.get("language", "en")]
        change("tokens", x="seeded", tokens=(split_sentence(text),), B=None, lengths=None)
    elif kind == "example":
        change("x", x="example", tokens=(), targets=(), lengths=None)
    else:
        change("x", x="seeded", tokens=(), targets=(), lengths=None)


def _sentence(field, label, chosen):
    key = f"w_{field}"
    lines = getattr(chosen, field)
    st.text_input(
        label,
        key=_set(key, " | ".join(" ".join(line) for line in lines)),
        on_change=lambda: _take_sentence(key, field),
        help=prose("about/sentence"),
    )
    count = " + ".join(str(len(line)) for line in lines)
    st.caption(_("{count} tokens").format(count=count))


def _take_sentence(key, field):
    """Words to rows; several sentences make a batch, in which shorter ones are padded."""
    parts = [split_sentence(part) for part in st.session_state[key].split("|")]
    lines = tuple(line[:LONGEST] for line in parts if line)
    if not lines:
        return change(field, x="seeded", **{field: ()})
    values = {field: lines, "x": "seeded"}
    if field == "tokens":
        uneven = len(set(map(len, lines))) > 1
        values["B"] = len(lines) if len(lines) > 1 else None
        values["lengths"] = tuple(map(len, lines)) if uneven else None
    return change(field, **values)


# --- sizes ------------------------------------------------------------------------------------


def _size(field, label, chosen, options=SIZES, disabled=False, help=None):
    value = getattr(chosen, field)
    listed = sorted({*options, value})
    key = f"w_{field}"
    st.select_slider(
        label,
        listed,
        key=_set(key, value),
        on_change=_take(key, field),
        disabled=disabled or len(listed) < 2,
        help=help,
    )
    complain(field)


def _sizes(chosen):
    by_tokens = _("One row per token: the sentence sets it.") if chosen.tokens else None
    asked = bool(chosen.targets) if chosen.cross else bool(chosen.tokens)
    _size("S", _("S, sequence length"), chosen, disabled=asked, help=by_tokens if asked else None)
    if chosen.cross:
        _size("T", _("T, source length"), chosen, disabled=bool(chosen.tokens))
    _size("H", _("H, hidden size"), chosen)
    if chosen.cross:
        _size("H_Y", _("H_Y, hidden size of Y"), chosen)
    left, right = st.columns(2)
    with left:
        _size("h", _("h, heads"), chosen, _divisors(chosen.H, 16) if _follows(chosen) else (1, 16))
    with right:
        _size("g", _("g, key/value heads"), chosen, _divisors(chosen.h, chosen.h))
    _widths(chosen)
    _batch(chosen)


def _divisors(number, most):
    return [n for n in range(1, most + 1) if number % n == 0]


def _follows(chosen):
    return not st.session_state.get("w_free", False) and chosen.d_k * chosen.h == chosen.H


def _widths(chosen):
    follows = _follows(chosen) and chosen.d_v == chosen.d_k
    st.toggle(
        _("d_k = H / h"),
        key=_set("w_follow", follows),
        on_change=_follow,
        help=_("On: the usual choice, d_k·h = H. Off: choose d_k and d_v freely."),
    )
    complain("d_k")
    if follows:
        st.caption(f"d_k = d_v = {chosen.H} / {chosen.h} = {chosen.d_k}")
        return
    left, right = st.columns(2)
    with left:
        _size("d_k", _("d_k, key width"), chosen)
    with right:
        _size("d_v", _("d_v, value width"), chosen)


def _follow():
    st.session_state["w_free"] = not st.session_state["w_follow"]
    if st.session_state["w_follow"]:
        change("d_k", d_k=None, d_v=None)


def _batch(chosen):
    by_sentences = len(chosen.tokens) > 1
    st.select_slider(
        _("B, batch size"),
        [0, *range(1, 9)] if (chosen.B or 0) < 9 else [0, *range(1, 9), chosen.B],
        key=_set("w_B", chosen.B or 0),
        format_func=({0: _("none")} | {n: str(n) for n in range(1, 17)}).get,
        on_change=_take("w_B", "B", lambda n: n or None),
        disabled=by_sentences,
    )
    complain("B", "lengths")


# --- choices ----------------------------------------------------------------------------------


def _choices(chosen):
    st.toggle(
        _("Cross-attention"),
        key=_set("w_cross", chosen.cross),
        on_change=_take("w_cross", "cross"),
        help=_("Queries come from a second sequence Y, keys and values from X."),
    )
    complain("cross")
    st.toggle(
        _("Output projection W_O"),
        key=_set("w_project", chosen.project),
        on_change=_take("w_project", "project"),
    )
    options = [False, True] + ["bottom-right"] * (
        chosen.S != chosen.T or chosen.causal not in (0, 1)
    )
    labels = {False: "every key", True: "earlier keys", "bottom-right": "bottom-right"}
    st.segmented_control(
        _("A query may see"),
        options,
        key=_set("w_causal", chosen.causal),
        format_func=_named(labels).get,
        on_change=_take("w_causal", "causal"),
        required=True,
        width="stretch",
        help=_("“Earlier keys” is the causal mask: query i sees keys 1 … i."),
    )
    st.segmented_control(
        _("Rotary positions (RoPE)"),
        list(ROTARY),
        key=_set("w_rotary", chosen.rotary or ""),
        format_func=_named(ROTARY).get,
        on_change=_take("w_rotary", "rotary", lambda pairs: pairs or None),
        required=True,
        width="stretch",
        help=_("Queries and keys are turned by their position, two columns at a time: column j "
               "with j + d_k/2 (halves), or 2i with 2i + 1 (neighbours)."),
    )  # fmt: skip
    complain("rotary")
    if chosen.lengths is not None:
        shown = ", ".join(map(str, chosen.lengths))
        st.caption(_("Padding is masked: lengths {lengths}.").format(lengths=shown))
    complain("causal", "hidden")


def _fine(chosen):
    st.number_input(
        _("Seed"), 0, 2**31 - 1, key=_set("w_seed", chosen.seed), on_change=_take("w_seed", "seed")
    )
    complain("seed")
    _number("gain", _("Weight scale: W has σ = gain / √H"), chosen, 0.1)
    _number("scale", _("Scale (empty: 1/√d_k)"), chosen, 0.05)
    _number("softcap", _("Softcap (empty: none)"), chosen, 1.0)
    _window(chosen)
    for field, label in (("dtype", _("Data type")), ("softmax_dtype", _("Softmax in"))):
        options = list(DTYPES) if field == "dtype" else [None, *DTYPES]
        shown = {name: name for name in DTYPES} | {None: _("the same type")}
        key = f"w_{field}"
        st.selectbox(
            label,
            options,
            key=_set(key, getattr(chosen, field)),
            format_func=shown.get,
            on_change=_take(key, field),
        )
        complain(field)


def _number(field, label, chosen, step):
    key = f"w_{field}"
    st.number_input(
        label,
        value=None,
        step=step,
        key=_set(key, getattr(chosen, field)),
        on_change=_take(key, field, lambda x: 1.0 if x is None and field == "gain" else x),
    )
    complain(field)


def _window(chosen):
    on = chosen.window is not None
    left, right = chosen.window or (2, 2)
    st.toggle(
        _("Local window"),
        key=_set("w_window", on),
        on_change=lambda: change("window", window=(2, 2) if st.session_state["w_window"] else None),
    )
    if on:
        columns = st.columns(2)
        for side, column, value in (("left", columns[0], left), ("right", columns[1], right)):
            column.number_input(
                {"left": _("keys before"), "right": _("keys after")}[side],
                -1,
                4096,
                key=_set(f"w_window_{side}", value),
                on_change=_take_window,
                help=_("How many keys on this side a query sees; −1: no limit."),
            )
    complain("window")


def _take_window():
    sides = (st.session_state["w_window_left"], st.session_state["w_window_right"])
    change("window", window=tuple(map(int, sides)))
