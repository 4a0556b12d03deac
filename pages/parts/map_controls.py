"""What a map can be asked for: where Q and K come from, how long, which mask, how it is drawn."""

from dataclasses import dataclass
from hashlib import blake2b

import streamlit as st

from core import longmap_sources, longmap_upload
from core.errors import InputError
from core.longmap_sources import LENGTHS, Source
from parts.choice import choice, steps
from parts.map_jobs import STORE, Job, Spec
from parts.state import escaped, sentence
from parts.text import N_, _, prose

SOURCES = {
    "induction": N_("Induction on a repeated text"),
    "needle": N_("Needle in a haystack"),
    "window": N_("Local window"),
    "sink": N_("Attention sink"),
    "alibi": N_("ALiBi decay"),
    "random": N_("Random"),
    "own": N_("My own Q and K"),
}
POOLS = {"max": N_("Largest"), "mean": N_("Mean")}
SCALES = {"log": N_("Logarithmic"), "linear": N_("Even")}
# Keys to each side of the query (to the left only where causal), as a mask.
WINDOWS = {"none": N_("None"), "16": "16", "64": "64", "256": "256", "1024": "1,024"}


@dataclass(frozen=True)
class Display:
    """How a map is drawn."""

    scale: str
    head: int


def source_name() -> str:
    """The control of the source, and what that source is about."""
    name = choice(_("Source of Q and K"), SOURCES, "map_source", default="induction")
    facts = {
        "weight": longmap_sources.NEEDLE_WEIGHT,
        "reach": longmap_sources.LOCAL_REACH,
        "repeats": longmap_sources.REPEATS,
    }
    st.markdown(prose(f"map/source_{name}", **facts))
    return name


def job(name: str) -> tuple[Job | None, Display | None]:
    """The remaining controls; the job for what they ask, or None until there is an upload."""
    if name == "own":
        return _own()
    left, right = st.columns([3, 1], gap="large", vertical_alignment="bottom")
    S = steps(_("S, sequence length"), LENGTHS, "map_S", default=4096, place=left)
    seed = right.number_input(
        _("Seed"), 0, 2**31 - 1, 0, 1, key="map_seed", bind="query-params", width=200
    )
    *asked, scale = _asked(name, longmap_sources.options(name).get("causal", False))
    spec = Spec(name, S, seed, *asked)
    made = STORE.job(spec, lambda: longmap_sources.make(name, S, seed=seed))
    return made, Display(scale, _head(made.source.heads))


def _own() -> tuple[Job | None, Display | None]:
    """A place to drop files; what does not fit gets one sentence."""
    files = st.file_uploader(
        _("One .npz or .safetensors with q and k, or q.npy and k.npy"),
        type=[kind[1:] for kind in longmap_upload.KINDS],
        accept_multiple_files=True,
        max_upload_size=longmap_upload.MOST_BYTES >> 20,
        key="map_files",
    )
    *asked, scale = _asked("own", False)
    if not files:
        return None, None
    try:
        contents = [(file.name, file.getvalue()) for file in files]
        digest = blake2b(repr([(n, blake2b(c).hexdigest()) for n, c in contents]).encode())
        source = _read(digest.hexdigest(), contents)
    except InputError as problem:
        st.error(escaped(sentence(problem)), icon=":material/error:")
        return None, None
    spec = Spec("own", source.shape[0], 0, *asked, digest.hexdigest())
    return STORE.job(spec, lambda: source), Display(scale, _head(source.heads))


def _read(digest: str, contents) -> Source:
    """What the files hold, read once per session."""
    kept = st.session_state.get("map_own")
    if kept is None or kept[0] != digest:
        kept = st.session_state["map_own"] = (digest, longmap_upload.read(contents))
    return kept[1]


def _asked(name: str, causal: bool) -> tuple:
    """Pooling, causal mask, window, and the colour scale."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        pool = choice(_("A tile shows"), POOLS, "map_pool", default="max", width="content")
        scale = choice(_("Colour scale"), SCALES, "map_scale", default="log", width="content")
        reach = choice(_("Window mask"), WINDOWS, "map_window", default="none", width="content")
        # Each source begins with the mask that its pattern is meant for.
        causal = st.toggle(_("Causal"), causal, key=f"map_causal_{name}", bind="query-params")
    st.caption(prose(f"map/pool_{pool}"))
    window = None if reach == "none" else (int(reach), 0 if causal else int(reach))
    return pool, causal, window, scale


def _head(heads: int) -> int:
    """Which head, where there are several."""
    if heads == 1:
        return 0
    names = {str(n): str(n) for n in range(heads)}
    return int(choice(_("Head"), names, "map_head", default="0"))
