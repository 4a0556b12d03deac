"""What a map can be asked for: where Q and K come from, how long, which mask, how it is drawn."""

from collections.abc import Mapping

import streamlit as st

from core import longmap_sources, longmap_upload
from core.errors import InputError
from core.longmap_sources import LENGTHS, Source
from parts import map_model
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
    "model": N_("Heads of a model"),
    "own": N_("My own Q and K"),
}
POOLS = {"max": N_("Largest"), "mean": N_("Mean")}
SCALES = {"log": N_("Logarithmic"), "linear": N_("Linear")}
# Keys to each side of the query (to the left only where causal), as a mask.
WINDOWS = {"none": N_("None"), "16": "16", "64": "64", "256": "256", "1024": "1,024"}


def source_name() -> str:
    """The control of the source, and what that source is about."""
    names = {name: SOURCES[name] for name in SOURCES if name != "model" or map_model.offered()}
    name = choice(_("Source of Q and K"), names, "map_source", default="induction")
    facts = {
        "weight": longmap_sources.NEEDLE_WEIGHT,
        "reach": longmap_sources.LOCAL_REACH,
        "repeats": longmap_sources.REPEATS,
    }
    st.markdown(prose(f"map/source_{name}", **facts))
    return name


def job(name: str) -> tuple[Job | None, str]:
    """The remaining controls, in the sidebar; the job for what they ask, and the colour scale.

    The job is None while there is no upload that can be read.
    """
    given = {"own": _own, "model": map_model.heads_of_a_model}.get(name)
    if given:
        return _given(name, *given())
    with st.sidebar:
        S = steps(_("S, sequence length"), LENGTHS, "map_S", default=4096)
        seed = st.number_input(_("Seed"), 0, 2**31 - 1, 0, 1, key="map_seed", bind="query-params")
        # Each source begins with the mask that its pattern is meant for.
        pool, scale, causal, window = _asked(name, longmap_sources.options(name))
    spec = Spec(name, S, seed, pool, causal, window)
    return STORE.job(spec, lambda: longmap_sources.make(name, S, seed=seed)), scale


def _given(name: str, source: Source | None, digest: str) -> tuple[Job | None, str]:
    """The job for a source that is there already; a model's own mask is not for choice."""
    with st.sidebar:
        options = dict(source.options) if source else {}
        pool, scale, causal, window = _asked(name, options, fixed=name == "model")
    if source is None:
        return None, scale
    own = {"scale": options.get("scale"), "softcap": options.get("softcap")}
    spec = Spec(name, source.shape[0], 0, pool, causal, window, digest, **own)
    return STORE.job(spec, lambda: source), scale


def _own() -> tuple[Source | None, str]:
    """A place to drop files, and what they hold; what does not fit gets one sentence."""
    files = st.file_uploader(
        _("One .npz or .safetensors with q and k, or q.npy and k.npy"),
        type=[kind[1:] for kind in longmap_upload.KINDS],
        accept_multiple_files=True,
        max_upload_size=longmap_upload.MOST_BYTES >> 20,
        key="map_files",
    )
    if not files:
        return None, ""
    upload = ",".join(file.file_id for file in files)
    try:
        kept = st.session_state.get("map_own")
        if kept is None or kept[0] != upload:  # read once
            source = longmap_upload.read([(file.name, file.getvalue()) for file in files])
            kept = st.session_state["map_own"] = (upload, source)
        return kept[1], upload
    except InputError as problem:
        st.error(escaped(sentence(problem)), icon=":material/error:")
        return None, ""


def _asked(name: str, options: Mapping, fixed: bool = False) -> tuple:
    """Pooling, colour scale, causal mask and window."""
    pool = choice(_("A tile shows"), POOLS, "map_pool", default="max")
    st.caption(prose(f"map/pool_{pool}"))
    scale = choice(_("Colour scale"), SCALES, "map_scale", default="log")
    causal = options.get("causal", False)
    if fixed:
        return pool, scale, causal, None
    causal = st.toggle(_("Causal"), causal, key=f"map_causal_{name}", bind="query-params")
    reach = choice(_("Window mask"), WINDOWS, "map_window", default="none")
    window = None if reach == "none" else (int(reach), 0 if causal else int(reach))
    return pool, scale, causal, window
