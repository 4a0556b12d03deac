"""The map in the browser: what is sent to assets/map/map.js, in which words."""

import json
import struct
from hashlib import blake2b

import numpy as np
import streamlit as st

from parts.map_picture import Picture, Scale
from parts.text import _

# Streamlit sends a component's script again with each change of its data: these lines only load
# the real one.
LOADER = """\
const folder = new URL("assets/map/", document.baseURI);
const style = fetch(new URL("map.css", folder)).then((answer) => answer.text());
const { default: draw } = await import(new URL("map.js", folder));
const css = await style;
export default (component) => draw(component, css);
"""

_mount = st.components.v2.component("long_map", js=LOADER)


def mount(packed: bytes, key: str) -> None:
    """Put the map on the page. What the reader looks at then stands in session_state[key].look."""
    _mount(key=key, data=packed, on_look_change=lambda: None)


def preload() -> None:
    """Let the browser fetch the map's code while there is nothing to draw yet."""
    _mount(key="map_preload", data=b"", on_look_change=lambda: None)


def pack(
    about: dict,
    picture: Picture,
    overview: Picture,
    scales: tuple[Scale, ...],
    heads: tuple[str, list[Picture]] | None = None,
) -> bytes:
    """One run of bytes: length of the header, header (JSON), weights if few, levels, all small.

    `heads`: a name for this state of the heads, and a small picture of each. `scales`: of the
    picture, the small one, and the heads if there are any.

    >>> tiny = Picture((0, 0, 2, 2), (1, 1), np.float32([[1, 0], [0.5, 0.5]]), numbers=True)
    >>> header, rest = unpack(pack({"n": 1}, tiny, tiny, (Scale("linear", 0, 1),) * 2))
    >>> header["numbers"], rest[:4].hex(), list(rest[16:])
    ([0, 0, 2, 2], '0000803f', [255, 0, 128, 128, 255, 0, 128, 128])
    """
    body = b""
    if picture.numbers:
        body += np.ascontiguousarray(picture.weights, "<f4").tobytes()
    for each, scale in zip((picture, overview), scales, strict=False):
        body += scale.levels(each.weights).tobytes()
    gallery = None
    if heads:
        name, pictures = heads
        body += b"".join(scales[2].levels(each.weights).tobytes() for each in pictures)
        gallery = {"id": name, "count": len(pictures), **_about(pictures[0], scales[2])}
    whole = about | {
        "gallery": gallery,
        "picture": _about(picture, scales[0]),
        "overview": _about(overview, scales[1]),
        "numbers": picture.rect if picture.numbers else None,
    }
    plain = json.dumps(whole, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    whole_id = blake2b(plain.encode() + body, digest_size=8).hexdigest()
    header = f'{plain[:-1]},"id":"{whole_id}"}}'.encode()
    header += b" " * (-len(header) % 4)  # so that the numbers start at a multiple of 4
    return struct.pack("<I", len(header)) + header + body


def unpack(packed: bytes) -> tuple[dict, bytes]:
    """The header and the rest of what `pack` made."""
    (length,) = struct.unpack_from("<I", packed)
    return json.loads(packed[4 : 4 + length]), packed[4 + length :]


def _about(picture: Picture, scale: Scale) -> dict:
    return {
        "rect": picture.rect,
        "block": picture.block,
        "shape": picture.weights.shape,
        "coarse": picture.coarse,
        "pending": picture.wanted is not None,
        "scale": {"kind": scale.kind, "low": scale.low, "high": scale.high},
    }


def words() -> dict[str, str]:
    """Every label of the component in the reader's language. {name} is filled in by the browser."""
    return {
        "map": _("Map of attention weights"),
        "stage": _("Map of {S} queries, down, and {T} keys, across"),
        "help": _(
            "Arrow keys move the cursor and the map, with Shift further. Plus and minus zoom. "
            "Home shows the whole map. Space chooses the largest weight under the cursor, "
            "Enter goes down to it."
        ),
        "heads": _("All heads, the whole map of each"),
        "head": _("Head {head}"),
        "closer": _("Zoom in"),
        "farther": _("Zoom out"),
        "whole": _("Whole map"),
        "field_i": _("query i"),
        "field_j": _("key j"),
        "field_range": _("Give a whole number from 0 to {most}."),
        "go": _("Go there"),
        "choose": _(
            "Click a place on the map to see its largest weight worked out here; "
            "double-click to go down to it."
        ),
        "single": _("One tile is one weight."),
        "tile_max": _("One tile is {rows} × {cols} weights and shows the largest."),
        "tile_mean": _("One tile is {rows} × {cols} weights and shows their mean."),
        "coarse_sample": _("Coarse: rows not computed yet stand for one sampled query."),
        "coarse_tiles": _("Coarse here: a finer picture takes a moment."),
        "scale_log": _("by the logarithm"),
        "scale_linear": _("evenly"),
        "nothing": _("weight 0: hidden by the mask, or too small for float32"),
        "reading_exact": _("query {i}, key {j}: weight {weight}"),
        "reading_cell": _("query {i}, key {j}: weight about {weight}"),
        "reading_max": _("queries {i0}–{i1}, keys {j0}–{j1}: largest weight about {weight}"),
        "reading_mean": _("queries {i0}–{i1}, keys {j0}–{j1}: mean weight about {weight}"),
        "cell": _("Query {i}, key {j}"),
        "product": _("q·k"),
        "scaled": _("scaled"),
        "capped": _("capped"),
        "weight": _("weight"),
        "weight_of": _("Weight"),
        "lse": _("{lse} is the log-sum-exp of this row: the logarithm of the sum of e^score."),
        "hidden": _("The mask hides this key from this query: its weight is 0."),
        "terms": _("All {count} terms of q·k"),
        "row": _("Row of query {i}"),
        "blind": _("This query sees no key: all its weights are 0."),
        "entropy": _("Entropy {entropy} nats, as if {effective} keys had equal shares."),
        "strongest": _("Strongest {count} keys, together {total} %"),
        "key": _("Key"),
        "go_key": _("Go to key {j}"),
        "spoken_cell": _("Query {i}, key {j}: weight {weight}"),
    }
