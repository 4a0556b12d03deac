"""What a mask is composed of: causal, window, lengths, pairs drawn by hand; all in the link."""

import streamlit as st

from core import AttentionConfig, InputError
from parts.choice import choices, steps
from parts.state import escaped, sentence, write_url
from parts.text import N_, _

KINDS = {
    "causal": N_("causal"),
    "window": N_("local window"),
    "padding": N_("padding"),
    "drawn": N_("drawn by hand"),
}
FIRST = "5, 3"


def asked() -> AttentionConfig | None:
    """The computation under the chosen masks; None, with the reason shown, if they do not fit."""
    left, right = st.columns(2, gap="large")
    with left:
        S = steps(_("S, sequence length"), tuple(range(2, 17)), "masks_S", default=6)
    with right:
        seed = st.number_input(
            _("Seed"), 0, 2**31 - 1, 0, 1, key="masks_seed", bind="query-params", width=200
        )
    if "masks_kinds" not in st.session_state and "masks_kinds" not in st.query_params:
        st.session_state["masks_kinds"] = ["causal"]
    kinds = choices(_("Composed of"), KINDS, "masks_kinds")
    values = {"causal": "causal" in kinds}
    try:
        values |= _window() if "window" in kinds else {}
        values |= _padding() if "padding" in kinds else {}
        hidden = drawn() if "drawn" in kinds else ()
        inside = tuple((i, j) for i, j in hidden if i < S and j < S)
        return AttentionConfig(S=S, H=4, seed=seed, gain=2.0, hidden=inside, **values)
    except InputError as problem:
        st.error(escaped(sentence(problem)), icon=":material/error:")
        return None


def _window() -> dict:
    before, after = st.columns(2, gap="large")
    help = _("How many keys on this side a query sees; −1: no limit.")
    sides = [
        place.number_input(
            label, -1, 16, start, 1, key=key, bind="query-params", help=help, width=200
        )
        for place, label, start, key in (
            (before, _("keys before"), 1, "masks_left"),
            (after, _("keys after"), 1, "masks_right"),
        )
    ]
    return {"window": tuple(int(side) for side in sides)}


def _padding() -> dict:
    """Lengths as typed, one per sample; InputError if they are no whole numbers."""
    text = st.text_input(
        _("Lengths, one per sample"), FIRST, key="masks_lengths", bind="query-params", width=300
    )
    parts = [part for part in text.replace("，", ",").replace(",", " ").split() if part]
    if not parts or not all(part.isdecimal() and len(part) < 5 for part in parts):
        raise InputError("not-whole", name=_("Lengths, one per sample"), got=repr(text[:40]))
    lengths = tuple(map(int, parts))[:8]
    return {"lengths": lengths, "B": len(lengths)}


# --- pairs drawn by hand ----------------------------------------------------------------------


def drawn() -> tuple[tuple[int, int], ...]:
    """The hidden (query, key) pairs of this session; at first those in the link."""
    if "masks_drawn" not in st.session_state:
        pairs = (part.split("-") for part in st.query_params.get("masks_drawn", "").split("."))
        st.session_state["masks_drawn"] = tuple(
            (int(pair[0]), int(pair[1]))
            for pair in pairs
            if len(pair) == 2 and all(n.isdecimal() and len(n) < 3 for n in pair)
        )
    return st.session_state["masks_drawn"]


def draw(pairs) -> None:
    """Keep the hidden pairs, in the session and in the link."""
    st.session_state["masks_drawn"] = tuple(sorted(pairs))
    text = ".".join(f"{i}-{j}" for i, j in sorted(pairs))
    write_url(("masks_drawn",), {"masks_drawn": text} if text else {})
