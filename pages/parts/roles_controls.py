"""What the page on three roles can be asked: sentence, seed, width, query, one weight."""

import streamlit as st

from core import AttentionConfig, InputError
from core.experiments import roles
from core.inputs import split_sentence
from parts.heads_controls import choose
from parts.state import escaped, sentence, write_url
from parts.text import _, language

SENTENCE = {"en": "the cat sat on the mat", "zh": "猫坐在垫子上"}
KEPT = {"bind": "query-params", "persist_state": "session"}
LETTERS = 200


def setting() -> AttentionConfig | None:
    """Sentence, seed and width; None, and the reason on screen, if they do not fit."""
    left, middle, right = st.columns([3, 1, 2], gap="large")
    with left:
        text = _sentence()
    seed = middle.number_input(_("Seed"), 0, 2**31 - 1, 0, key="roles_seed", **KEPT)
    with right:
        width = choose(_("d_k = d_v, width of the spaces"), ("2", "3"), "roles_d")
    try:
        return roles.setting(split_sentence(text), int(width), seed)
    except InputError as problem:
        called = {"sentence": _("The sentence"), "tokens": _("The number of tokens")}
        name = problem.facts["name"]
        named = InputError(problem.id, **(problem.facts | {"name": called.get(name, name)}))
        left.error(escaped(sentence(named)), icon=":material/error:")
    return None


def _sentence() -> str:
    """The sentence: one's own, from the session or the link, else that of the language."""
    state, usual = st.session_state, SENTENCE[language()]
    if "roles" not in state:
        state["roles"] = st.query_params.get("sentence", "")[:LETTERS] or None
    shown = usual if state["roles"] is None else state["roles"]
    if state.get("roles_sentence") != shown:
        state["roles_sentence"] = shown

    def take():
        typed = state["roles_sentence"]
        state["roles"] = None if typed == usual else typed

    st.text_input(_("Your sentence"), key="roles_sentence", max_chars=LETTERS, on_change=take)
    write_url(("sentence",), {"sentence": shown} if state["roles"] else {})
    return shown


def names(config: AttentionConfig) -> list[str]:
    """The tokens."""
    return list(config.tokens[0])


def query(config: AttentionConfig) -> int:
    """The position whose query is followed."""
    labels = {str(i): f"{i + 1} {escaped(token)}" for i, token in enumerate(names(config))}
    return int(choose(_("Query of"), labels, "roles_query"))


def turn(config: AttentionConfig) -> tuple[AttentionConfig, tuple[str, int, int, float]]:
    """One weight, and what is added to it: the changed configuration, and what was changed."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        matrix = choose(_("Change a weight of"), roles.TURNABLE, "roles_W")
        rows = {str(i): f"h {i + 1}" for i in range(config.H)}
        row = int(choose(_("Row (entry of x)"), rows, "roles_row"))
        columns = {str(i): str(i + 1) for i in range(config.d_k)}
        column = int(choose(_("Column (axis of the space)"), columns, "roles_column"))
    by = st.slider(_("Added to this weight"), -3.0, 3.0, 0.0, 0.1, key="roles_by", **KEPT)
    return roles.turned(config, matrix, row, column, by), (matrix, row, column, by)
