"""The map and what stands around it: progress, the reader's place, the facts of row and cell."""

import math
from dataclasses import dataclass, field
from uuid import uuid4

import numpy as np
import streamlit as st

from parts import map_picture
from parts.map_component import mount, pack, words
from parts.map_jobs import Job
from parts.state import escaped, sentence
from parts.text import _

KEY = "map_component"
PIXELS = (640, 640)  # until the browser says how large its map is
PATIENCE = 0.35  # seconds that a first look waits for the exact map
SOON = 8192**2  # scores that may be done within that
POLL = 1.0  # seconds between two looks at a map in the making
NEAR = 12  # cells across after a descent
STRONGEST = 10
NEAR_TOKENS = 80  # rows and columns up to which tokens are sent


@dataclass
class Look:
    """Where the reader is; kept in the session, so that a page switch loses nothing."""

    shape: tuple
    view: tuple[int, int, int, int]
    cell: tuple[int, int] | None = None
    head: int = 0
    pixels: tuple[int, int] = PIXELS
    n: int = 0  # the browser's last question
    epoch: int = 1  # raised when the server wants the browser elsewhere
    heard: dict | None = field(default=None, repr=False)
    who: str = field(default_factory=lambda: uuid4().hex, repr=False)


def stage(job: Job, scale: str) -> None:
    """The map of a job. While it is in the making it is looked at again every second."""
    S, T = job.source.shape
    job.look(PATIENCE if S * T * job.source.heads <= SOON else 0)
    if job.state == "failed" or job.map is None:
        said = sentence(job.problem) if job.problem else _("This map could not be computed.")
        st.error(escaped(said), icon=":material/error:")
        return
    # Also while it is stopped: to begin or end looking takes a run of the whole page, in which a
    # press of a button could be lost.
    polled = job.state != "done"
    st.fragment(_stage, run_every=POLL if polled else None)(job, scale, polled)


def _stage(job: Job, scale: str, polled: bool) -> None:
    job.look()
    if polled and job.state in ("done", "failed"):
        st.rerun()  # nothing to wait for any more
    _progress(job)
    look = _looked(job)
    _component(job, look, scale)
    _notices(job)


def go_to(cell: tuple[int, int]) -> None:
    """Bring the reader down to a cell on the next run."""
    look: Look = st.session_state["map_look"]
    _centre(look, cell)
    look.cell = cell


def _progress(job: Job) -> None:
    """How far a map is, and the switch that stops it and lets it go on.

    A switch, not a button: a press of a button can be lost between two looks, a state cannot.
    """
    if job.state == "done":
        return
    found = job.map
    with st.container(horizontal=True, vertical_alignment="center", key="map_progress"):
        share = f"{100 * found.done:.0f} %"
        said = {
            "waiting": _("Waiting for another long map; the coarse picture is here already."),
            "stopped": _("Stopped: {share} of the rows are exact.").format(share=share),
        }.get(job.state) or _left(found.seconds_left, share)
        st.progress(found.done, said)
        st.session_state["map_run"] = job.state != "stopped"  # another reader may have stopped it
        st.toggle(_("Keep computing"), key="map_run", on_change=_switched, args=(job,))


def _switched(job: Job) -> None:
    if st.session_state["map_run"]:
        job.resume()
    else:
        job.stop()


def _left(seconds: float | None, share: str) -> str:
    if seconds is None:
        return _("{share} of the rows are exact").format(share=share)
    return _("{share} of the rows are exact, about {seconds} s left").format(
        share=share, seconds=max(1, round(seconds))
    )


# --- where the reader is --------------------------------------------------------------------------


def _looked(job: Job) -> Look:
    """The reader's place, after what the browser has reported since."""
    S, T = job.source.shape
    look = st.session_state.get("map_look")
    if look is None:
        look = st.session_state["map_look"] = _from_url(S, T, job.source.heads)
    elif look.shape != (S, T):
        look.shape, look.view, look.cell = (S, T), (0, 0, S, T), None
        look.epoch += 1
    look.head = min(look.head, job.source.heads - 1)
    component = st.session_state.get(KEY)
    heard = component.get("look") if component else None
    if heard and heard != look.heard and heard.get("map") == _name(S, T):
        look.heard = heard
        _hear(look, job, heard)
    return look


def _name(S: int, T: int) -> str:
    return f"{S}×{T}"


def _hear(look: Look, job: Job, heard: dict) -> None:
    """Take what the browser reports, as far as it fits the map."""
    S, T = look.shape
    look.n = int(heard["n"])
    look.view = _inside(heard["view"], S, T) or look.view
    look.pixels = tuple(min(map_picture.MOST, max(16, int(n))) for n in heard["pixels"])
    if "head" in heard:
        look.head = min(max(0, int(heard["head"])), job.source.heads - 1)
    if "cell" in heard:
        cell = heard["cell"] and _inside([*heard["cell"], 1, 1], S, T)
        look.cell = cell[:2] if cell else None
    tile = heard.get("tile") and _inside(heard["tile"], S, T)
    if tile and tile[2] * tile[3] <= 1 << 26:
        with job.store.attending():
            look.cell = map_picture.strongest_in(job.map, tile, look.head)
        if heard.get("near"):
            _centre(look, look.cell, max(1, int(heard["near"])))


def _centre(look: Look, cell: tuple[int, int], near: int = NEAR) -> None:
    S, T = look.shape
    rows, cols = min(near, S), min(near, T)
    i = min(S - rows, max(0, cell[0] - rows // 2))
    j = min(T - cols, max(0, cell[1] - cols // 2))
    look.view = (i, j, rows, cols)
    look.epoch += 1


def _inside(rect, S: int, T: int) -> tuple[int, int, int, int] | None:
    """The rectangle, cut to the map; None if nothing of it is left."""
    i, j, rows, cols = (int(n) for n in rect)
    i0, j0 = max(0, i), max(0, j)
    rows, cols = min(S, i + rows) - i0, min(T, j + cols) - j0
    return (i0, j0, rows, cols) if rows > 0 and cols > 0 else None


def _from_url(S: int, T: int, heads: int) -> Look:
    """The place that a link names; what cannot be read is left out.

    The browser itself writes it there (map.js): from here each move would be a step of its history.
    """

    def numbers(name, count):
        parts = st.query_params.get(name, "").split(",")
        good = len(parts) == count and all(part.isdecimal() and len(part) < 12 for part in parts)
        return [int(part) for part in parts] if good else None

    rect, cell, head = numbers("at", 4), numbers("cell", 2), numbers("head", 1)
    view = (rect and _inside(rect, S, T)) or (0, 0, S, T)
    chosen = cell and _inside([*cell, 1, 1], S, T)
    return Look(
        (S, T), view, chosen[:2] if chosen else None, min(head[0], heads - 1) if head else 0
    )


# --- what is sent ---------------------------------------------------------------------------------


def _component(job: Job, look: Look, scale: str) -> None:
    found, source = job.map, job.source
    S, T = look.shape
    heads = _heads(job, scale)
    most = map_picture.MOST_WITH_HEADS if heads else map_picture.MOST
    picture = job.picture(look.view, tuple(min(n, most) for n in look.pixels), look.head, look.who)
    small = map_picture.overview(found, look.head)
    brightest = max(heads[1], key=lambda each: each.weights.max()) if heads else small
    scales = tuple(map_picture.scale(scale, each, T) for each in (picture, small, brightest))
    about = {
        "n": look.n,
        "S": S,
        "T": T,
        "map": _name(S, T),
        "pool": job.spec.pool,
        "epoch": look.epoch,
        "view": look.view,
        "pixels": look.pixels,
        "head": look.head,
        "count": source.heads,
        "cell": _cell(job, look.cell, look.head),
        "row": _row(job, look.cell, look.head),
        "tokens": _tokens(source, look.view),
        "text": words(),
    }
    mount(pack(about, picture, small, scales, heads), KEY)


def _heads(job: Job, scale: str) -> tuple[str, list] | None:
    """A small picture of each head, unless the browser has these already."""
    if job.source.heads == 1:
        return None
    name = f"{hash(job.spec)}·{job.version}·{scale}"
    component = st.session_state.get(KEY)
    heard = component.get("look") if component else None
    if heard and heard.get("gallery") == name:
        return None
    most = map_picture.THUMBNAIL
    return name, [map_picture.overview(job.map, h, most) for h in range(job.source.heads)]


def _cell(job: Job, at, head: int) -> dict | None:
    """The arithmetic of the chosen cell."""
    if at is None:
        return None
    found, source = job.map.cell(*at, head=head), job.source
    q = source.q if source.q.dim() == 2 else source.q[head]
    k = source.k if source.k.dim() == 2 else source.k[head * source.k.shape[0] // source.heads]
    problem = job.map.problem
    return {
        "i": at[0],
        "j": at[1],
        "q": q[at[0]].tolist(),
        "k": k[at[1]].tolist(),
        "products": found.products.tolist(),
        "raw": found.raw,
        "scale": problem.scale,
        "scaled": found.scaled,
        "softcap": problem.softcap,
        "capped": found.capped,
        "visible": found.visible,
        "lse": found.lse if math.isfinite(found.lse) else None,
        "weight": found.weight,
        "names": [source.tokens(n) for n in at] if source.tokens else None,
    }


def _row(job: Job, at, head: int) -> dict | None:
    """The strongest keys of the chosen cell's query, and how spread its weights are."""
    if at is None:
        return None
    keys, weights = job.map.strongest(at[0], STRONGEST, head=head)
    weights = weights.cpu().numpy().astype(np.float64)
    nats = _entropy(job.map.row(at[0], head=head).cpu().numpy().astype(np.float64))
    tokens = job.source.tokens
    return {
        "i": at[0],
        "name": tokens(at[0]) if tokens else None,
        "entropy": nats,
        "effective": math.exp(nats),
        "total": float(weights.sum()),
        "keys": [
            {"j": int(j), "weight": float(w), "name": tokens(int(j)) if tokens else None}
            for j, w in zip(keys, weights, strict=True)
        ],
    }


def _entropy(weights: np.ndarray) -> float:
    """Of one row, in nats. That of all rows would take the engine a pass more.

    >>> round(float(np.exp(_entropy(np.array([0.25, 0.25, 0.5, 0.0])))), 3)
    2.828
    """
    seen = weights[weights > 0]
    return float(-(seen * np.log(seen)).sum())


def _tokens(source, view) -> dict | None:
    """The words along both edges, where they are near enough to be read."""
    i, j, rows, cols = view
    if source.tokens is None or max(rows, cols) > NEAR_TOKENS:
        return None
    said = [[source.tokens(n) for n in range(a, a + m)] for a, m in ((i, rows), (j, cols))]
    return {"from": [i, j], "rows": said[0], "cols": said[1]}


def _notices(job: Job) -> None:
    """What the engine has to say: NaN, overflow, queries that see nothing."""
    if job.state == "done":
        for notice in job.map.notices:
            st.warning(escaped(sentence(notice)), icon=":material/info:")
