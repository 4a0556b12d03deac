"""Pictures of long maps: a PNG read back byte by byte, and a Plotly heatmap."""

import math
import struct
import zlib

import numpy as np
import pytest
import torch

from core.figures import longmap as picture
from core.figures import theme
from core.longmap import attention_map


@pytest.fixture
def shown():
    generator = torch.Generator().manual_seed(3)
    q, k = (torch.randn(2, n, 8, generator=generator) for n in (20, 30))
    return attention_map(q, k, tiles=10, causal=True)


def read(data: bytes):
    """Levels (rows, cols) and colours (256, 3) of a PNG with a palette."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    parts, at = {}, 8
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        parts[kind] = data[at + 8 : at + 8 + size]
        (crc,) = struct.unpack(">I", data[at + 8 + size : at + 12 + size])
        assert crc == zlib.crc32(kind + parts[kind])
        at += 12 + size
    cols, rows, bits, colour, *rest = struct.unpack(">IIBBBBB", parts[b"IHDR"])
    assert (bits, colour, rest) == (8, 3, [0, 0, 0])
    lines = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(rows, cols + 1)
    assert not lines[:, 0].any()  # no filter
    assert list(parts)[-1] == b"IEND"
    return lines[:, 1:], np.frombuffer(parts[b"PLTE"], np.uint8).reshape(256, 3)


def test_a_png_holds_each_tile_as_a_level(shown, tmp_path):
    path = picture.save_png(shown, tmp_path / "map.png", head=1)
    pixels, colours = read(path.read_bytes())
    tiles = shown.tiles[1].numpy()
    assert pixels.shape == tiles.shape == (10, 10)
    assert ((pixels == 0) == (tiles == 0)).all()
    seen = tiles > 0
    written = 10 ** ((pixels[seen].astype(float) - 1) / 254 * 8 - 8)
    np.testing.assert_allclose(written, tiles[seen], rtol=10 ** (8 / 254 / 2) - 1 + 1e-3)
    first, last = (bytes.fromhex(theme.unit(False)[n][1][1:]) for n in (0, -1))
    assert (bytes(colours[0]), bytes(colours[255])) == (first, last)


def test_levels_in_proportion_and_dark_colours(shown):
    pixels, colours = read(picture.png(shown, log=False, dark=True, most=0.5))
    tiles = shown.tiles[0].numpy()
    wanted = np.where(tiles > 0, np.clip(np.rint(1 + 254 * tiles / 0.5), 1, 255), 0)
    np.testing.assert_array_equal(pixels, wanted)
    assert bytes(colours[255]) == bytes.fromhex(theme.unit(True)[-1][1][1:])


def test_levels_of_what_is_no_share():
    found = picture.levels(np.array([math.nan, 0.0, 1e-30, 0.99, 2.0]))
    assert found.tolist() == [0, 0, 1, 255, 255]


def test_a_figure_has_positions_on_its_axes_and_weights_under_the_pointer(shown):
    drawn = picture.figure(shown, head=1).data[0]
    tiles = shown.tiles[1].numpy()
    np.testing.assert_array_equal(drawn.customdata, tiles)
    np.testing.assert_allclose(drawn.z[tiles > 0], np.log10(tiles[tiles > 0]), rtol=1e-6)
    assert np.isnan(drawn.z[tiles == 0]).all()
    assert (drawn.x[0], drawn.x[-1], drawn.y[0], drawn.y[-1]) == (-0.5, 29.5, -0.5, 19.5)
    assert picture.figure(shown).layout.yaxis.autorange == "reversed"
