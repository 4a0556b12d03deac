"""The microscope on a page: a trace goes to the browser, the reader's step and cell come back.

>>> chosen = show(manifest, values, key="microscope")  # doctest: +SKIP
>>> chosen.step, chosen.cell, chosen.pick  # doctest: +SKIP
(7, {'symbol': 'scores', 'index': [0, 1]}, {'B': 0, 'h': 0})
"""

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
import streamlit as st

from parts.text import _

# Travels with every change of the data, so it is short: the rest is fetched from /assets.
# Streamlit takes a string of one line for the path of a file.
LOADER = """\
const address = new URL("assets/microscope/microscope.js", document.baseURI);
const { default: draw } = await import(address);
export default draw;
"""
STATES = ("step", "cell", "pick")

_mount = st.components.v2.component("qkv_microscope", js=LOADER)


@dataclass(frozen=True)
class Chosen:
    """What the reader has chosen: step, clicked cell (or None), batch item and head."""

    step: int
    cell: dict | None
    pick: dict


def show(
    manifest: dict,
    values: np.ndarray,
    *,
    key: str,
    step: int = 0,
    cell: dict | None = None,
    height: int | str = "content",
    on_change: Callable[[Chosen], None] | None = None,
) -> Chosen:
    """Draw a trace (see core/manifest.py) and return where the reader stands.

    `step` is where the page wants the reader: at first, and again whenever it changes to something
    that the reader did not choose (a link, a reset). Passing back what was chosen is harmless.
    `cell` is marked as clicked whenever the step is set so, at first above all.
    `on_change` is given what is chosen, before the rerun that a new step, cell or pick causes.
    Raises TypeError or ValueError for what the browser could not read; see `pack`.
    """
    step = min(max(int(step), 0), len(manifest["steps"]) - 1)
    reported = st.session_state.get(key)
    cell = _fitting(manifest["steps"], cell)
    wanted = _settle(key, step, cell, None if reported is None else reported.get("step"))

    def changed():
        if on_change:
            on_change(_checked(manifest, st.session_state[key]))

    heard = _mount(
        key=key,
        data=pack(manifest, values, text=words(), key=key, **wanted),
        default={"step": step, "cell": cell, "pick": manifest.get("pick", {})},
        height=height,
        **{f"on_{state}_change": changed for state in STATES},
    )
    memory, chosen = st.session_state[_memory(key)], _checked(manifest, heard)
    if memory.get("shown") != memory["epoch"]:  # the browser has yet to follow
        chosen = replace(chosen, step=memory["step"])
    memory.update(shown=memory["epoch"], seen=chosen.step)
    return chosen


def jump(key: str, step: int, cell: dict | None = None) -> None:
    """Make the microscope `key` go to a step on the next run, wherever the reader is."""
    memory = st.session_state.setdefault(_memory(key), {"epoch": 0})
    memory.update(step=step, cell=cell, asked=step, seen=step, epoch=memory["epoch"] + 1)


def pack(
    manifest: dict,
    values: np.ndarray,
    *,
    text: dict,
    key: str = "",
    step: int = 0,
    cell: dict | None = None,
    epoch: int = 0,
) -> bytes:
    """One run of bytes: length of the header, header (JSON), float32 values, all little-endian.

    Streamlit hands bytes to the browser as they are, but turns arrays, tensors and bytes inside a
    dictionary into text without a word; so all else is refused here, by TypeError (not plain data,
    not a 1-D float32 array) or ValueError (NaN or ∞ in the JSON, a tensor beyond the values).

    >>> header, values = unpack(pack({"steps": []}, np.ones(2, np.float32), text={}, step=3))
    >>> header["step"], values
    (3, array([1., 1.], dtype=float32))
    """
    if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype != np.float32:
        raise TypeError(f"values must be a 1-D float32 array, not {_described(values)}")
    for record in manifest["steps"]:
        _check_bounds(record, values.size)
    body = values.astype("<f4", copy=False).tobytes()
    plain = json.dumps(manifest, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    about = {
        "id": blake2b(plain.encode() + body, digest_size=8).hexdigest(),
        "key": key,
        "step": step,
        "cell": cell,
        "epoch": epoch,
        "text": text,
    }
    rest = json.dumps(about, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    header = f'{rest[:-1]},"manifest":{plain}}}'.encode()
    header += b" " * (-len(header) % 4)  # so that the numbers start at a multiple of 4
    return struct.pack("<I", len(header)) + header + body


def unpack(packed: bytes) -> tuple[dict, np.ndarray]:
    """The header and the values of what `pack` made."""
    (length,) = struct.unpack_from("<I", packed)
    return json.loads(packed[4 : 4 + length]), np.frombuffer(packed, "<f4", offset=4 + length)


def words() -> dict:
    """Every label of the component in the reader's language. {name} is filled in by the browser."""
    return {
        "microscope": _("Microscope"),
        "steps": _("Steps"),
        "equation": _("This step as an equation of matrices"),
        "previous": _("Previous step"),
        "next": _("Next step"),
        "play": _("Play"),
        "pause": _("Pause"),
        "space": _("Space"),
        "hint_step": _("step"),
        "hint_ends": _("first, last"),
        "hint_play": _("play"),
        "hint_cell": _("Point at a number, or tap it, to see where it comes from."),
        "hint_target": _("Click a number to see its derivatives."),
        "batch": _("Batch item"),
        "head": _("Head"),
        "key_head": _("Key/value head"),
        "matrix": _("{symbol}, {rows} rows, {cols} columns"),
        "scale": _("Colours from {low} to {high}"),
        "given": _("Given: nothing was computed for it."),
        "same_number": _("The same number as {source}, at the same place in memory."),
        "copied": _("The same number as {source}, copied."),
        "mask_open": _("{mask}: may attend, the score stays."),
        "mask_closed": _("{mask}: may not attend, the score becomes −∞."),
        "blind": _("This query may attend to nothing: all its weights are 0."),
        "pooled": _("The number furthest from 0 among {rows} × {cols}."),
        "click_for": _("Click for the arithmetic."),
        "stages": {
            "input": _("Input"),
            "project": _("Project"),
            "split": _("Split heads"),
            "place": _("Norm and position"),
            "compare": _("Compare"),
            "scale": _("Scale"),
            "mask": _("Mask"),
            "normalise": _("Normalise"),
            "mix": _("Mix"),
            "merge": _("Merge heads"),
        },
    }


def _settle(key: str, step: int, cell: dict | None, reported: int | None) -> dict:
    """The step, cell and epoch to send.

    The browser obeys an epoch that it has not seen before and else keeps the reader's own place;
    so they stay as they are while the page asks nothing new.
    """
    fresh = {"step": step, "cell": cell, "asked": step, "seen": step, "epoch": 1}
    memory = st.session_state.setdefault(_memory(key), fresh)
    if "shown" in memory:
        returned = reported is None  # from another page: the reader's state was dropped
        if returned or step not in (memory["asked"], memory["seen"], reported):
            memory.update(step=step, cell=cell, epoch=memory["epoch"] + 1)
    memory["asked"] = step
    return {name: memory[name] for name in ("step", "cell", "epoch")}


def _memory(key: str) -> str:
    return f"{key} · asked"


def _checked(manifest: dict, heard: dict) -> Chosen:
    """The browser's report, with what no longer fits this trace left out."""
    steps = manifest["steps"]
    step = min(max(int(heard.get("step") or 0), 0), len(steps) - 1)
    pick = heard.get("pick") or manifest.get("pick", {})
    return Chosen(step, _fitting(steps, heard.get("cell")), dict(pick))


def _fitting(steps: list, cell: dict | None) -> dict | None:
    shapes = {record["symbol"]: record["shape"] for record in steps}
    shape = shapes.get(cell["symbol"]) if cell else None
    if shape is None or len(shape) != len(cell["index"]):
        return None
    inside = all(0 <= i < size for i, size in zip(cell["index"], shape, strict=True))
    return {"symbol": cell["symbol"], "index": [int(i) for i in cell["index"]]} if inside else None


def _check_bounds(record: dict, size: int) -> None:
    tensor = record["tensor"]
    if "rows" in tensor:
        last = max(tensor["offset"], tensor["where"]) + tensor["rows"] * tensor["cols"] - 1
    else:
        reach = zip(record["shape"], tensor["strides"], strict=True)
        last = tensor["offset"] + sum((n - 1) * stride for n, stride in reach)
    if last >= size:
        raise ValueError(f"{record['symbol']} ends at {last}, beyond the {size} values")


def _described(thing) -> str:
    shape = f" of shape {tuple(thing.shape)}" if hasattr(thing, "shape") else ""
    return f"{type(thing).__name__}{shape}"
