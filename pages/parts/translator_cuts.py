"""Cut and see: heads silenced, links cut, a word swapped; what that does, and what it all rests on.

What is taken away stands in the URL: `silent=encoder.1.4` and `cuts=cross.1.0.2.3` (place, layer,
head or 0 for all, row, column; all from 1), several with commas between.
"""

import streamlit as st

from core.numbers import write
from core.translator import Edits, load
from parts.heads_tables import Cell, show, table
from parts.state import escaped, write_url
from parts.text import _, prose
from parts.translator_runs import (
    PLACES,
    chances,
    head_name,
    heads,
    joined,
    rests_on,
    run,
    sides,
)
from parts.translator_sentence import fits, put

SILENT, CUTS, SWAP = "silent", "cuts", "swap"
MOST = 24  # cut links
SENSES = ("河岸", "银行")  # of "bank": what a reader asks about first


def edits(text: str) -> Edits:
    """What is taken away, as the session or the link has it; parts this sentence lacks are left."""
    for key in (SILENT, CUTS):
        if key not in st.session_state:
            st.session_state[key] = _read(st.query_params.get(key, ""), 3 if key == SILENT else 5)
    known = set(heads())
    silent = tuple(head for head in st.session_state[SILENT] if head in known)
    length = load().sizes.longest
    cuts = tuple(cut for cut in st.session_state[CUTS] if _exists(cut, known, length))
    write_url((SILENT, CUTS), {key: _link(found) for key, found in
                               ((SILENT, silent), (CUTS, cuts)) if found})  # fmt: skip
    return Edits(cuts=cuts, silent=silent)


def _read(text: str, parts: int) -> list[tuple]:
    found = []
    for one in text.split(",")[: MOST * 2]:
        place, *numbers = one.split(".")
        if len(numbers) == parts - 1 and all(n.isascii() and n.isdecimal() for n in numbers):
            found.append((place, *(int(n[:4]) - 1 for n in numbers)))
    return found


def _exists(cut, known, length) -> bool:
    place, layer, head, i, j = cut
    return (place, layer, max(head, 0)) in known and head >= -1 and all(
        0 <= n < length for n in (i, j)
    )  # fmt: skip


def _link(found) -> str:
    return ",".join(".".join((place, *(str(n + 1) for n in rest))) for place, *rest in found)


# --- taking away ------------------------------------------------------------------------------


def controls(text: str, place: str, layer: int) -> None:
    """Silence heads, cut a link in the chosen attention, swap a word, put everything back."""
    st.pills(
        _("Silence heads"), heads(), key=SILENT, selection_mode="multi", wrap=True,
        format_func=lambda head: head_name(*head),
    )  # fmt: skip
    asking, answering = sides(run(text), place)
    rows = {i: f"{i + 1} {word}" for i, word in enumerate(asking)}
    keys = {j: f"{j + 1} {word}" for j, word in enumerate(answering)}
    count = load().sizes.h
    with st.container(horizontal=True, vertical_alignment="bottom"):
        i = st.selectbox(_("Row that asks"), list(rows), format_func=rows.get, width=170,
                         key=f"cut_row_{place}_{len(rows)}")  # fmt: skip
        j = st.selectbox(_("Word it may not see"), list(keys), format_func=keys.get, width=170,
                         key=f"cut_key_{place}_{len(keys)}")  # fmt: skip
        later = place == "decoder" and j > i
        names = {-1: _("all heads"), **{n: str(n + 1) for n in range(count)}}
        head = st.selectbox(
            _("Head"), list(names), format_func=names.get, width=130, key="cut_head"
        )
        st.button(
            _("Cut this link"), icon=":material/content_cut:", key="cut_add", on_click=_cut,
            args=((place, layer, head, i, j),),
            disabled=len(st.session_state[CUTS]) >= MOST or later,
            help=_("A row of the decoder never sees a later one.") if later else None,
        )  # fmt: skip
    st.caption(_("Links are cut in the attention chosen above: {place}, layer {layer}.").format(
        place=_(PLACES[place]), layer=layer + 1))  # fmt: skip


def taken(text: str, away: Edits) -> None:
    """What is taken away now, each with a way back."""
    if not away:
        return
    named = run(text)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(_("Taken away:"))
        for cut in away.cuts:
            place, layer, head, i, j = cut
            asking, answering = sides(named, place)
            pair = " → ".join(
                side[n] if n < len(side) else str(n + 1)
                for side, n in ((asking, i), (answering, j))
            )
            where = head_name(place, layer, head) if head >= 0 else _(
                "{place} {layer} · all heads").format(place=_(place), layer=layer + 1)  # fmt: skip
            st.button(f"{escaped(pair)} ({where})", icon=":material/close:", key=f"cut_{cut}",
                      on_click=_restore, args=(cut,))  # fmt: skip
        for head in away.silent:
            st.button(head_name(*head), icon=":material/close:", key=f"silent_{head}",
                      on_click=_sound, args=(head,))  # fmt: skip
        st.button(_("Put everything back"), icon=":material/restart_alt:", key="cut_reset",
                  on_click=_reset)  # fmt: skip


def _cut(cut) -> None:
    st.session_state[CUTS] = [*dict.fromkeys([*st.session_state[CUTS], cut])]


def _restore(cut) -> None:
    st.session_state[CUTS] = [one for one in st.session_state[CUTS] if one != cut]


def _sound(head) -> None:
    st.session_state[SILENT] = [one for one in st.session_state[SILENT] if one != head]


def _reset() -> None:
    st.session_state[SILENT], st.session_state[CUTS] = [], []


# --- seeing -----------------------------------------------------------------------------------


def before_and_after(text: str, away: Edits) -> None:
    """The translation, and the probability of each of its words, whole and with parts away."""
    if not away:
        st.caption(prose("translator/nothing"))
        return
    whole, cut = run(text), run(text, away)
    _comparison(whole, cut, chances(text, whole.target, away), _("whole"), _("parts taken away"))


def swapping(text: str, away: Edits) -> None:
    """One word of the sentence replaced: the two translations beside each other."""
    source = run(text).source
    names = {i: f"{i + 1} {word}" for i, word in enumerate(source)}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        at, word = _swap(source)
        at = st.selectbox(_("Swap this word"), list(names), index=at, format_func=names.get,
                          width=170, key=f"swap_at_{text}")  # fmt: skip
        known = load().known
        word = st.selectbox(_("for"), known, index=known.index(word), width=200,
                            key=f"swap_word_{text}")  # fmt: skip
        other = " ".join((*source[:at], word, *source[at + 1 :]))
        st.button(_("Take this sentence"), key="swap_take", on_click=put, args=(other,))
    write_url((SWAP,), {SWAP: f"{at + 1}.{word}"} if word != source[at] else {})
    if word == source[at]:
        st.caption(prose("translator/swap"))
        return
    if fits(other):
        first, second = run(text, away), run(other, away)
        _comparison(first, second, chances(other, first.target, away), " ".join(source), other)


def _swap(source) -> tuple[int, str]:
    """The swap a link asks for; else the last word with itself."""
    place, _dot, word = st.query_params.get(SWAP, "").partition(".")
    at = int(place) - 1 if place.isascii() and place.isdecimal() and len(place) < 3 else -1
    if 0 <= at < len(source) and word in load().known:
        return at, word
    clue = next((i for i, one in enumerate(source) if one in ("fisherman", "banker")), None)
    return (0, source[0]) if clue is None else (clue, source[clue])


def _comparison(first, second, given, name, other) -> None:
    rows = []
    for i, (step, p) in enumerate(zip(first.steps, given, strict=True)):
        now = second.steps[i] if i < len(second.steps) else None
        chosen = [now.word, Cell(write(now.probabilities[0][1], 3))] if now else ["–", "–"]
        before = step.probabilities[0][1]
        rows.append((str(i + 1), [step.word, Cell(write(before, 3), share=before),
                                  Cell(write(p, 3), share=p), *chosen]))  # fmt: skip
    head = [_("step number"), _("word before"), _("probability before"), _("its probability after"),
            _("word after"), _("its own probability")]  # fmt: skip
    told = ((name, first), (other, second))
    st.markdown(
        " · ".join(f"{escaped(said)}: **{escaped(joined(made.target))}**" for said, made in told)
    )
    show(table(_("Word by word"), head, rows, name="comparison"))


def resting(text: str, away: Edits, at: int) -> None:
    """Every head silenced in turn: which one the chosen word rests on."""
    made = run(text, away)
    if not made.target:
        return
    names = {i: f"{i + 1} {escaped(word)}" for i, word in enumerate(made.target)}
    key = f"rest {' '.join(made.target)}"
    if key not in st.session_state:
        doubtful = [i for i, word in enumerate(made.target) if word in SENSES]
        st.session_state[key] = doubtful[0] if doubtful else min(at, len(names) - 1)
    t = st.pills(_("Which head does this word rest on?"), list(names), key=key, required=True,
                 format_func=names.get)  # fmt: skip
    found = rests_on(text, made.target, t, away)
    rows = [
        (
            head_name(one.place, one.layer, one.head),
            [Cell(write(one.chance, 3), share=one.chance), joined(one.target),
             _("unchanged") if one.target == made.target else _("changed")],
        )
        for one in found
    ]  # fmt: skip
    head = [_("without"), _("probability of “{word}”").format(word=made.target[t]),
            _("translation then"), ""]  # fmt: skip
    with_all = made.steps[t].probabilities[0][1]
    show(table(_("Each head silenced in turn, the most needed first"), head, rows, name="rests"))
    changed = sum(one.target != made.target for one in found)
    least = found[0]
    st.markdown(
        prose(
            "translator/rests" if least.chance < 0.5 * with_all else "translator/rests_spread",
            word=made.target[t], head=head_name(least.place, least.layer, least.head),
            before=write(with_all, 3), after=write(least.chance, 3), tried=len(found),
            changed=changed,
        )
    )  # fmt: skip
