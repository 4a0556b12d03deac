"""The component with the two tied pictures, and what it is told: one record per stage."""

import json
from collections.abc import Callable
from math import isfinite

import streamlit as st

from core.dims import DIMS
from core.memory import Stage, Walk
from core.memory_chain import write_chain, write_shape
from core.memory_presets import names
from parts.text import _

# Streamlit sends a component's script again with each change of its data: these lines only load
# the real one.
_strides = st.components.v2.component(
    "strides",
    js="""
    export default async function (component) {
      const url = new URL("assets/strides/strides.js", document.baseURI);
      const { default: draw } = await import(url);
      return draw(component);
    }
    """,
)


def strides(walk: Walk, stage: int, on_stage: Callable, on_remove: Callable) -> None:
    """Draw the table of stages and the pictures of one. When called back, the stage the reader has
    picked, or the place of the operation to remove, stands in `session_state["memory_strides"]`."""
    _strides(
        key="memory_strides",
        data={
            "manifest": json.dumps(manifest(walk, stage), allow_nan=False),
            "text": json.dumps(words()),
        },
        on_stage_change=on_stage,
        on_remove_change=on_remove,
    )


def manifest(walk: Walk, stage: int) -> dict:
    """All the browser needs: shapes, strides and storages as plain numbers.

    >>> from core.memory import walk as run
    >>> manifest(run((2, 3)), 0)["storages"]
    [[0, 1, 2, 3, 4, 5]]
    """
    reached = len(walk.stages) - 1
    return {
        "key": f"{write_shape(walk.shape)}|{write_chain(walk.chain)}",
        "stage": stage,
        "stages": [_stage(walk, place, record) for place, record in enumerate(walk.stages)],
        "storages": [[_number(value) for value in storage.tolist()] for storage in walk.storages],
        "unreached": [str(operation) for operation in walk.chain[reached:]],
    }


def _number(value: float) -> int | float | None:
    """Whole numbers without their ".0"; None for a product too large for float32."""
    if not isfinite(value):
        return None
    return int(value) if abs(value) < 1e9 else value


def _stage(walk: Walk, place: int, stage: Stage) -> dict:
    dims, symbol = names(walk.shape, walk.chain, place)
    return {
        "operation": str(stage.operation) if stage.operation else "",
        "symbol": symbol,
        "dims": [_dim(name) for name in dims],
        "shape": stage.shape,
        "strides": stage.strides,
        "offset": stage.offset,
        "contiguous": stage.contiguous,
        "breaks": [
            {
                "dim": found.dim,
                "stride": found.stride,
                "inner": found.inner,
                "innerStride": found.inner_stride,
                "innerSize": found.inner_size,
            }
            for found in stage.breaks
        ],
        "storage": stage.storage,
        "shares": stage.shares,
        "startBytes": stage.start_bytes,
        "elements": stage.elements,
        "viewBytes": stage.view_bytes,
        "storageBytes": stage.storage_bytes,
        "touched": stage.touched,
    }


def _dim(name: str) -> dict:
    """A named dim for the browser; a product such as g·d_k has no colour of its own."""
    known = [DIMS[part] for part in name.split("*") if part in DIMS]
    return {
        "symbol": name.replace("*", "·"),
        "name": " · ".join(_(dim.name) for dim in known),
        "colour": known[0].colour if len(known) == 1 else "",
    }


def words() -> dict:
    """What the component says, in the reader's language."""
    return {
        "columns": [
            "#",
            _("Operation"),
            _("Shape"),
            _("Strides"),
            _("Offset"),
            _("Contiguous"),
            _("Storage"),
            _("Bytes: view / storage"),
            _("Remove"),
        ],
        "table": _("Stages of the chain"),
        "start": _("start"),
        "refused": _("refused: the chain stops here"),
        "unreached": _("not reached"),
        "remove": _("Remove {operation}"),
        "yes": _("yes"),
        "no": _("no: dim {dim}, {rule}"),
        "same": _("same"),
        "copy": _("copy"),
        "holds": _(
            "Contiguous: every stride is the next stride · the next size, and the last is 1."
        ),
        "holdsOnes": _(
            "Contiguous: every stride is the next stride · the next size, and the last is 1. "
            "Dims of size 1 are exempt: nobody steps along them."
        ),
        "breakAt": _(
            "Not contiguous at dim {dim}: stride {stride} ≠ {innerStride}·{innerSize} = {expected} "
            "(stride · size of dim {inner})."
        ),
        "breakLast": _(
            "Not contiguous at dim {dim}: stride {stride} ≠ 1, which the innermost dim needs."
        ),
        "sameFact": _("The same storage as the stage before: nothing was copied."),
        "copyFact": _("A new storage: {elements} elements were written, {viewBytes} bytes."),
        "starts": _(
            "data_ptr stands {startBytes} bytes (offset {offset}) after the storage's start."
        ),
        "fewer": _("{elements} elements read only {touched} different cells: a stride is 0."),
        "part": _("The view reads {touched} of the storage's {cells} cells."),
        "tensor": _("The tensor {shape}"),
        "storage": _("Its storage {letter}, cells in a row: {cells}"),
        "tensorHelp": _(
            "Tensor {shape}. Arrow keys move between elements, Page keys along the third last dim, "
            "Space plays the walk."
        ),
        "stripHelp": _("Storage of {cells} cells. Arrow keys move between cells."),
        "cell": _("cell {address}: {value}"),
        "prompt": _("Point at an element or a storage cell, or move with the arrow keys."),
        "element": _("element [{index}] = {value}"),
        "offset": _("offset"),
        "address": _("cell"),
        "shared": _(
            "{readers} elements read cell {address}: stepping along a stride of 0 stays there."
        ),
        "unread": _("No element of this tensor reads cell {address}."),
        "play": _("Play"),
        "pause": _("Pause"),
        "speed": _("Speed"),
        "rate": _("{rate} per second"),
        "progress": _("{n} of {all}: cell {address}, {move}"),
        "begins": _("{n} of {all}: cell {address}"),
        "jumps": _("In logical order: {hops} hops, {jumps} of them not to the next cell."),
        "straight": _("In logical order: {hops} hops, each to the next cell."),
    }
