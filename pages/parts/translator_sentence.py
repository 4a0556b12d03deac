"""The sentence to translate: typed or picked, and what to do about words nobody taught the network.

Bound to the URL by hand, as buttons change it too.
"""

import streamlit as st

from core import InputError
from core.translator import load
from parts.state import escaped, sentence, write_url
from parts.text import _, prose
from parts.translator_runs import LONGEST, run

KEY = "english"
START = "the cat sat on the mat"
EXAMPLES = (
    START,
    "the cat chases the mouse",
    "the mouse chases the cat",
    "the fisherman waits at the bank",
    "the banker waits at the bank",
    "at the bank my friend's old teacher did not catch fish yesterday",
    "the girl opens a bank account",
    "two dogs do not sleep on the river bank",
    "yesterday my friend bought three red hats",
)


def asked() -> str | None:
    """The sentence to translate; None, with the reason on screen, if it cannot be."""
    if KEY not in st.session_state:
        st.session_state[KEY] = st.query_params.get(KEY, START)[:LONGEST]
    text = st.text_input(_("English sentence"), key=KEY, max_chars=LONGEST)
    write_url((KEY,), {KEY: text} if text != START else {})
    with st.container(horizontal=True, gap="small"):
        for place, example in enumerate(EXAMPLES):
            st.button(
                example,
                key=f"example_{place}",
                on_click=put,
                args=(example,),
            )
    known = load().known
    with st.expander(_("What it can say, with {count} words").format(count=len(known))):
        st.markdown(prose("translator/patterns"))
        st.markdown(escaped(" · ".join(known)))
    return text if fits(text) else None


def put(text: str) -> None:
    """Translate another sentence."""
    st.session_state[KEY] = text


def fits(text: str) -> bool:
    """Whether a sentence can be translated; if not, why, with a button for each word near by."""
    try:
        run(text)
    except InputError as problem:
        found = load().unknown(text)
        if problem.id != "translator-unknown":
            st.error(escaped(sentence(problem)), icon=":material/error:")
        for word, near in found:
            facts = {"got": word, "known": len(load().known), "near": ", ".join(near) or "–"}
            said = InputError("translator-unknown", **facts)
            st.error(escaped(sentence(said)), icon=":material/error:")
        return False
    return True
