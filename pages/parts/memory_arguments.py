"""Small controls for the numbers of one operation, made for the shape it is applied to."""

from math import prod

import streamlit as st

from core.memory_chain import Shape
from parts.text import _


def argument_boxes(name: str, shape: Shape) -> list[str]:
    """Draw the controls of operation `name`; returns their session keys, in the numbers' order.

    The keys carry the shape, so that another shape begins with fresh defaults.
    """
    boxes = _BOXES.get(name, _nothing)
    return boxes(f"memory_{name}_{'x'.join(map(str, shape))}", shape)


def written(values: list) -> str:
    """What the controls hold, as it stands between the brackets.

    >>> written([1, None, [2, 3], "4, 5"])
    '1,2,3,4,5'
    """
    flat = []
    for value in values:
        flat += value if isinstance(value, list) else [value]
    return ",".join(
        str(value).replace(" ", "").replace("，", ",") for value in flat if value is not None
    )


def _nothing(key: str, shape: Shape) -> list[str]:
    st.caption(_("takes no numbers"))
    return []


def _dim(key: str, what: str, label: str, shape: Shape, start: int = 0) -> str:
    dims = list(range(max(len(shape), 1)))
    key = f"{key}_{what}"
    labels = [_("{dim} (size {size})").format(dim=dim, size=(*shape, 1)[dim]) for dim in dims]
    st.selectbox(
        label,
        dims,
        index=start % len(dims),
        key=key,
        format_func=labels.__getitem__,
        width=150,
    )
    return key


def _number(key: str, what: str, label: str, start: int, least: int, most: int) -> str:
    key = f"{key}_{what}"
    st.number_input(label, least, most, start, key=key, width=130)
    return key


def _text(key: str, label: str, start: Shape) -> str:
    key = f"{key}_sizes"
    st.text_input(label, ", ".join(map(str, start)), key=key, max_chars=40, width=220)
    return key


def _sizes(key: str, shape: Shape) -> list[str]:
    """view and reshape begin with the last two dims run together, or a vector cut in half."""
    halves = (2, prod(shape) // 2) if prod(shape) % 2 == 0 else (1, prod(shape))
    start = (*shape[:-2], shape[-2] * shape[-1]) if len(shape) > 1 else halves
    return [_text(key, _("Sizes (one may be −1)"), start)]


def _expand(key: str, shape: Shape) -> list[str]:
    stretched = tuple(2 if size == 1 else size for size in shape)
    return [_text(key, _("Sizes (−1 keeps one)"), stretched if 1 in shape else (2, *shape))]


def _permute(key: str, shape: Shape) -> list[str]:
    return [_text(key, _("Dims in their new order"), tuple(reversed(range(len(shape)))))]


def _transpose(key: str, shape: Shape) -> list[str]:
    return [
        _dim(key, "first", _("Dim"), shape, -2),
        _dim(key, "second", _("and dim"), shape, -1),
    ]


def _narrow(key: str, shape: Shape) -> list[str]:
    largest = max((*shape, 1))
    return [
        _dim(key, "dim", _("Dim"), shape, -1),
        _number(key, "start", _("Start"), 0, 0, largest),
        _number(key, "length", _("Length"), 1, 1, largest),
    ]


def _slice(key: str, shape: Shape) -> list[str]:
    largest = max((*shape, 1))
    return [
        _dim(key, "dim", _("Dim"), shape, -1),
        _number(key, "start", _("Start"), 0, -largest, largest),
        _number(key, "stop", _("Stop"), (*shape, 1)[len(shape) - 1], -largest, largest),
        _number(key, "step", _("Step"), 2, 1, largest + 1),
    ]


def _flip(key: str, shape: Shape) -> list[str]:
    key = f"{key}_dims"
    dims = list(range(max(len(shape), 1)))
    st.multiselect(_("Dims"), dims, dims[-1:], key=key, width=220)
    return [key]


def _squeeze(key: str, shape: Shape) -> list[str]:
    ones = [dim for dim, size in enumerate(shape) if size == 1]
    key = f"{key}_dim"
    every = _("every dim of size 1")
    st.selectbox(
        _("Dim"),
        [None, *ones],
        key=key,
        format_func=lambda dim: every if dim is None else str(dim),
        width=220,
    )
    return [key]


def _unsqueeze(key: str, shape: Shape) -> list[str]:
    return [_number(key, "place", _("Place of the new dim"), 0, 0, len(shape))]


def _repeat(key: str, shape: Shape) -> list[str]:
    return [
        _number(key, "repeats", _("Repeats"), 2, 1, 64),
        _dim(key, "dim", _("Dim"), shape, 0),
    ]


def _matmul(key: str, shape: Shape) -> list[str]:
    return [_number(key, "columns", _("Columns of W"), 4, 1, 256)]


_BOXES = {
    "view": _sizes,
    "reshape": _sizes,
    "expand": _expand,
    "permute": _permute,
    "transpose": _transpose,
    "narrow": _narrow,
    "slice": _slice,
    "flip": _flip,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    "repeat_interleave": _repeat,
    "matmul": _matmul,
}
