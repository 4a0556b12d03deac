"""A translation word by word: who is looked at, which words were likely, how the cache grows."""

import time

import streamlit as st

from core.numbers import write
from core.translator import Run, load
from parts.heads_tables import Cell, show, table
from parts.state import escaped, write_url
from parts.text import _, prose
from parts.translator_runs import joined

KEY = "word"
END = "<end>"
PLAYING, DUE = "word_playing", "word_due"
PACE = 1.2  # seconds a word stays while it plays
SURE = 0.9  # probability below which a reader is warned


def stepping(made: Run) -> int:
    """Next, back, start, play and the slider; returns the step in view, from 0."""
    count = len(made.steps)
    _open(count)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        at = (
            st.slider(_("Step of the translation"), 1, count, key=KEY, width=260, on_change=_rest)
            if count > 1
            else 1
        )
        st.button(_("From the start"), icon=":material/first_page:", key="word_first",
                  on_click=_go, args=(1,))  # fmt: skip
        st.button(_("Back"), icon=":material/chevron_left:", key="word_back",
                  disabled=at == 1, on_click=_go, args=(at - 1,))  # fmt: skip
        st.button(_("Next word"), icon=":material/chevron_right:", key="word_next",
                  disabled=at == count, on_click=_go, args=(at + 1,))  # fmt: skip
        _play_button(at, count)
    if st.session_state.get(PLAYING):
        _go_on(at)
    write_url((KEY,), {KEY: str(at)} if at != count else {})
    return at - 1


def _open(count: int) -> None:
    """Begin where the link says, else with the whole translation; stay there while it fits."""
    kept = st.session_state.pop(DUE, None) or st.session_state.get(KEY)
    if kept is None:
        named = st.query_params.get(KEY, "")
        kept = int(named) if named.isdecimal() and named.isascii() and len(named) < 4 else count
    fitting = min(max(kept, 1), count)
    if "word_end" in st.session_state and st.session_state["word_end"] != count:
        fitting = count  # another sentence
    st.session_state["word_end"] = count
    if st.session_state.get(KEY) != fitting:
        st.session_state[KEY] = fitting
    if fitting == count:
        _rest()


def _go(step: int) -> None:
    st.session_state[KEY] = step
    _rest()


def _play_button(at: int, count: int) -> None:
    if st.session_state.get(PLAYING):
        st.button(_("Pause"), icon=":material/pause:", key="word_play", on_click=_rest)
    else:
        st.button(_("Play"), icon=":material/play_arrow:", key="word_play", disabled=count == 1,
                  on_click=_play, args=(at, count))  # fmt: skip


def _play(at: int, count: int) -> None:
    """Word after word from here; from the first if all are written."""
    st.session_state[KEY] = 1 if at == count else at
    st.session_state[PLAYING] = True


def _rest() -> None:
    st.session_state[PLAYING] = False


def _go_on(at: int) -> None:
    """Show the next word after a while."""
    shown = time.monotonic()

    @st.fragment(run_every=PACE)
    def beat():
        # A fragment runs at once as well, together with the page.
        if time.monotonic() - shown > PACE / 2 and st.session_state.get(PLAYING):
            st.session_state[DUE] = at + 1
            st.rerun()

    beat()


def words_so_far(made: Run, at: int) -> None:
    """The translation up to this step, as tiles; the newest is marked."""
    shown = [(_("source"), [Cell(word) for word in made.source])]
    tiles = [
        Cell(step.word, share=1.0 if i == at else 0.25) if i <= at else Cell("·")
        for i, step in enumerate(made.steps)
    ]
    written = [(_("translation"), tiles)]
    show(
        table(_("English"), ["", *(str(i + 1) for i in range(len(made.source)))], shown,
              name="source"),
        table(_("Chinese, step by step"), ["", *(str(i + 1) for i in range(len(made.steps)))],
              written, name="target"),
    )  # fmt: skip
    written = [word for word in made.written[: at + 1] if word != END]
    st.subheader(escaped(joined(written)), anchor=False)
    sure = [step.probabilities[0][1] for step in made.steps[: at + 1]]
    if min(sure) < SURE:
        word = escaped(made.steps[sure.index(min(sure))].word)
        st.info(prose("translator/unsure", word=word, p=write(min(sure), 2)))


def looking(made: Run, at: int) -> None:
    """Whom the row of this step looks at, head by head, and the words it found likely."""
    sizes, step = load().sizes, made.steps[at]
    rows = [
        (
            _("layer {layer}, head {head}").format(layer=layer + 1, head=head + 1),
            [Cell(write(x, 2), share=x) for x in made.weights["cross", layer][head, at].tolist()],
        )
        for layer in range(sizes.decoder)
        for head in range(sizes.h)
    ]
    said = _("Cross-attention of the row that holds “{read}” and predicts “{word}”")
    likely = [(word, [Cell(write(p, 3), share=p)]) for word, p in step.probabilities]
    show(
        table(said.format(read=step.read, word=step.word), ["", *made.source], rows, name="looks"),
        table(_("The likeliest words"), ["", _("probability")], likely, name="likely"),
    )


def cache(made: Run, at: int) -> None:
    """Keys and values kept so far: shapes, bytes, and the rows that need not be made again."""
    sizes = load().sizes
    h, _n, d_k = made.steps[0].cache
    rows = [
        (
            str(i + 1),
            [step.read, f"({h}, {step.cache[1]}, {d_k})", f"{step.cache_bytes:,}", "1",
             str(step.cache[1])],
        )
        for i, step in enumerate(made.steps[: at + 1])
    ]  # fmt: skip
    head = [_("step number"), _("row read in"), _("K and V, each"), _("bytes of both"),
            _("rows computed"), _("rows without a cache")]  # fmt: skip
    show(table(_("KV cache of the decoder"), head, rows, current=at, name="cache"))
    total = sum(step.cache[1] for step in made.steps[: at + 1])
    st.markdown(
        prose(
            "translator/cache", rows=at + 1, total=total, h=h, d_k=d_k, T=len(made.source),
            source=f"{made.source_bytes:,}", layers=sizes.decoder,
            row=2 * sizes.decoder * h * d_k * 4,
        )
    )  # fmt: skip
