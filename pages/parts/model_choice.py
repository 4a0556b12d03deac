"""Which model reads, and what: the choice of a model, the sentences, and where a text is cut."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

import streamlit as st

from core import InputError, models
from core.figures import STILL
from core.figures.head_map import blank
from parts.choice import choice
from parts.state import escaped, sentence, write_url
from parts.text import N_, _, prose

OTHER = "…"  # stands for a folder or name that is typed
FIRST, SECOND = (
    "We sat on the river bank and watched the boats.",
    "She opened a bank account in the city.",
)
FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via")  # what proxies add
LETTERS = 12_000  # of a text; far beyond what 1,024 tokens hold


def local() -> bool:
    """Whether only this machine reaches the page: the server listens here, the visitor is here,
    and the browser asked for an address here. Behind a proxy the origin or its headers tell."""
    headers = st.context.headers
    listening = str(st.get_option("server.address") or "")
    asked = str(headers.get("Host") or "").rpartition(":")[0].strip("[]")
    origin = urlsplit(str(headers.get("Origin") or "//localhost")).hostname or ""
    visitor = st.context.ip_address or "127.0.0.1"  # None on this machine
    passed_on = any(headers.get(name) for name in FORWARDED)
    return not passed_on and all(map(_loopback, (listening, asked, origin, visitor)))


def _loopback(name: str) -> bool:
    """>>> _loopback("localhost"), _loopback("::1"), _loopback("0.0.0.0"), _loopback("")
    (True, True, False, False)
    """
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False


def chosen() -> models.Model | None:
    """The model asked for, loaded; None, with the reason shown, if there is none."""
    offered, here = list(models.offered()), local()
    source = _asked(offered, here)
    if not source:
        if not offered:
            st.markdown(prose("model/none"))
        return None
    place = st.empty()
    if not models.ready(source):
        # The browser fetches what draws charts (1 s) while the model is loaded.
        place.plotly_chart(blank(), theme=None, config=STILL, key="model_blank", alt=_("Loading"))
    try:
        with st.spinner(_("Loading {name} …").format(name=escaped(source)), show_time=True):
            return models.load(source, local=here)
    except InputError as problem:
        complain(problem)
        return None
    finally:
        place.empty()


def complain(problem: InputError) -> None:
    """One sentence in the reader's language."""
    st.error(escaped(sentence(problem)), icon=":material/error:")


def _asked(offered: list[str], here: bool) -> str:
    """The name or folder, as chosen or typed; it stands in the link."""
    options = [*offered, *([OTHER] if here else [])]
    linked = st.query_params.get("model", "")
    if "model_offered" not in st.session_state:
        typed = linked and linked not in offered
        st.session_state["model_offered"] = OTHER if typed and here else linked or None
        st.session_state["model_typed"] = linked if typed else ""
    if st.session_state["model_offered"] not in options:
        st.session_state["model_offered"] = options[0] if options else None
    source = ""
    if options:
        names = {name: name for name in offered} | {OTHER: _("A folder on this machine …")}
        source = st.selectbox(_("Model"), options, key="model_offered", format_func=names.get)
    if source == OTHER:
        label = _("Folder, or a name on the hub") if models.hub_allowed() else _("Folder")
        source = st.text_input(
            label, key="model_typed", placeholder="/models/bert-base", help=prose("model/folder")
        ).strip()
        if not source:
            st.caption(prose("model/folder"))
    refused = not here and linked and linked not in offered
    if refused:
        complain(InputError("model-place", name=linked))
    default = offered[0] if offered else ""
    if not refused:
        write_url(("model",), {"model": source} if source and source != default else {})
    return source


def texts(model: models.Model) -> tuple[str, str]:
    """The sentence, and the second one (or what a decoder is to have written)."""
    left, right = st.columns(2, gap="large")
    options = {"bind": "query-params", "max_chars": LETTERS, "height": 90}
    first = left.text_area(_("Sentence"), FIRST, key="model_text", **options)
    if model.pairs:
        label, start = _("What it is to have written (empty: it writes itself)"), ""
    else:
        label, start = _("Second sentence, to compare"), SECOND
    key = "model_target" if model.pairs else "model_second"
    return first, right.text_area(label, start, key=key, **options)


HOW = {"apart": N_("each by itself"), "together": N_("as one text")}


def together(model: models.Model, other: str) -> bool:
    """Whether both sentences are to be read as one; asked of a model that can."""
    if not (model.couples and other.strip()):
        return False
    return choice(_("Read the two sentences"), HOW, "model_how", default="apart") == "together"


def read(
    model: models.Model, text: str, target: str = "", *, beside: str = "", key: str = "first"
) -> models.Reading | None:
    """The model's reading; None, with the reason and the offer to cut, if it cannot be."""
    cut = st.query_params.get("model_cut") == "1"
    try:
        with st.spinner(_("Reading …"), show_time=True):
            reading = models.read(model, text, target, beside=beside, cut=cut)
    except InputError as problem:
        complain(problem)
        if problem.id == "model-long":
            label = _("Cut it after {most} tokens").format(most=problem.facts["most"])
            icon = ":material/content_cut:"
            st.button(label, icon=icon, key=f"model_cut_{key}", on_click=_cut, args=("1",))
        return None
    if cut and len(reading.tokens) == model.limit:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(_("Texts of more than {most} tokens are cut.").format(most=model.limit))
            st.button(_("Do not cut"), key=f"model_whole_{key}", on_click=_cut, args=(None,))
    return reading


def _cut(value: str | None) -> None:
    write_url(("model_cut",), {"model_cut": value} if value else {})
