"""A long map as a picture: a PNG written without any further package, or a Plotly heatmap.

>>> import torch
>>> from core.longmap import attention_map
>>> m = attention_map(torch.eye(4), torch.eye(4), tiles=2, scale=0.0)
>>> png(m)[:4], figure(m, log=False).data[0].z.tolist()
(b'\\x89PNG', [[0.25, 0.25], [0.25, 0.25]])
"""

from __future__ import annotations

import math
import struct
import zlib
from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from core.figures import theme
from core.longmap import AttentionMap

DECADES = 8  # that a logarithmic scale reaches down from 1


def levels(values: np.ndarray, log: bool = True, most: float = 1.0) -> np.ndarray:
    """Weights as uint8: 0 is 0, 255 is `most`; logarithmic, or in proportion. 0 is only for 0.

    >>> levels(np.array([0, 1e-9, 1e-4, 1])).tolist()
    [0, 1, 128, 255]
    """
    share = np.asarray(values, np.float32) / np.float32(most or 1.0)
    if log:
        with np.errstate(divide="ignore"):
            share = np.where(share > 0, 1 + np.log10(share) / DECADES, -math.inf)
    steps = np.clip(np.rint(1 + 254 * np.nan_to_num(share, neginf=-1.0)), 1, 255)
    return np.where(np.asarray(values) > 0, steps, 0).astype(np.uint8)


def colours(dark: bool = False) -> np.ndarray:
    """The 256 colours of the levels, uint8 (256, 3)."""
    stops = theme.unit(dark)
    at = [place for place, _ in stops]
    rgb = [[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for _, colour in stops]
    mixed = [np.interp(np.linspace(0, 1, 256), at, channel) for channel in zip(*rgb, strict=True)]
    return np.rint(np.stack(mixed, -1)).astype(np.uint8)


def png(
    shown: AttentionMap, *, head: int = 0, log: bool = True, dark: bool = False, most: float = 1.0
) -> bytes:
    """One pixel per tile, in the colours of the page. `most`: the weight of the full colour.

    >>> import torch
    >>> from core.longmap import attention_map
    >>> m = attention_map(torch.eye(3), torch.eye(3))
    >>> struct.unpack(">II", png(m)[16:24])                              # width, height
    (3, 3)
    """
    pixels = levels(shown.tiles_of(head).numpy(), log, most)
    rows, cols = pixels.shape
    lines = np.zeros((rows, cols + 1), np.uint8)  # each begins with its filter: none
    lines[:, 1:] = pixels
    head_ = struct.pack(">IIBBBBB", cols, rows, 8, 3, 0, 0, 0)  # 8 bits, palette
    parts = [(b"IHDR", head_), (b"PLTE", colours(dark).tobytes())]
    parts += [(b"IDAT", zlib.compress(lines.tobytes(), 6)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def save_png(shown: AttentionMap, path, **options) -> Path:
    """Write `png(shown, **options)` to a file, and return its path."""
    path = Path(path)
    path.write_bytes(png(shown, **options))
    return path


def figure(
    shown: AttentionMap, *, head: int = 0, log: bool = True, dark: bool = False
) -> go.Figure:
    """A Plotly heatmap of the tiles, with positions on its axes, query 0 on top.

    Colours follow the logarithm of the weight, unless `log` is false; what is hovered is the
    weight. Weights of 0 are left blank on a logarithmic scale.
    """
    tiles = shown.tiles_of(head).numpy()
    with np.errstate(divide="ignore"):
        z = np.log10(tiles) if log else tiles
    z = np.where(np.isfinite(z), z, np.nan) if log else z
    limits = (-DECADES, 0) if log else (0, 1)
    rows, cols = shown.row_edges.numpy(), shown.col_edges.numpy()
    trace = go.Heatmap(
        z=tiles if not log else z, y=rows - 0.5, x=cols - 0.5, zmin=limits[0], zmax=limits[1],
        customdata=tiles, colorscale=theme.unit(dark), hoverongaps=False,
        hovertemplate="q %{y:d} · k %{x:d}: %{customdata:.4g}<extra></extra>",
        colorbar={"tickprefix": "10<sup>", "ticksuffix": "</sup>"} if log else None,
    )  # fmt: skip
    made = go.Figure(trace, layout={"template": theme.template(dark)})
    made.update_yaxes(autorange="reversed", title="i", constrain="domain")
    made.update_xaxes(title="j", constrain="domain")
    return made
