"""Taking a map along: the code that makes it in a notebook, and its picture as a file."""

import streamlit as st

from core.figures.longmap import png
from parts.map_jobs import Job, Spec
from parts.text import _, prose

LOADED = {
    "own": "q, k = …  # the tensors that you have",
    "model": "q, k = …  # of a captured call: call.q[0], call.k[0]",
}


def snippet(spec: Spec, cell: tuple[int, int], head: int | None = None) -> str:
    """Code that makes the map of `spec` and looks at one of its weights; `head` where there is an
    axis of heads.

    >>> print(snippet(Spec("sink", 128, 0, "max", True, None), (127, 0)))
    from core import longmap
    from core.figures.longmap import save_png
    from core.longmap_sources import make
    <BLANKLINE>
    source = make("sink", 128, seed=0)
    q, k = source.q, source.k  # (S, d) and (T, d)
    m = longmap.attention_map(q, k, causal=True)
    save_png(m, "map.png")
    cell = m.cell(127, 0)
    print(cell.weight, cell.products)
    """
    made = spec.source not in LOADED
    usual = {"pool": "max", "causal": False, "window": None, "scale": None, "softcap": None}
    changed = [f"{k}={v!r}" for k, v in spec.options.items() if v != usual[k]]
    which = "" if head is None else f", head={head}"
    lines = [
        "from core import longmap",
        "from core.figures.longmap import save_png",
        *(["from core.longmap_sources import make"] if made else []),
        "",
        *([f'source = make("{spec.source}", {spec.S}, seed={spec.seed})'] if made else []),
        "q, k = source.q, source.k  # (S, d) and (T, d)" if made else LOADED[spec.source],
        f"m = longmap.attention_map({', '.join(['q', 'k', *changed])})",
        'save_png(m, "map.png")',
        f"cell = m.cell({cell[0]}, {cell[1]}{which})",
        "print(cell.weight, cell.products)",
    ]
    return "\n".join(lines)


def take_along(job: Job, scale: str) -> None:
    """The code, and the picture as it is so far."""
    st.markdown(prose("map/notebook"))
    look = st.session_state.get("map_look")
    cell = (look and look.cell) or job.source.landmark or (0, 0)
    head, dark = look.head if look else 0, st.context.theme.type == "dark"
    several = head if job.source.q.dim() == 3 else None
    st.code(snippet(job.spec, cell, several), language="python")
    if job.map is None:
        return
    st.download_button(
        _("Picture (PNG)"),
        lambda: png(job.map, head=head, log=scale == "log", dark=dark),
        "map.png",
        "image/png",
        key="map_png",
        icon=":material/image:",
        on_click="ignore",
    )
