"""What a reader sees of a map: one picture of at most 1,024² levels, whatever the view covers.

A level is a weight on a colour scale of one byte: 0 stands for a weight of exactly 0, 1 … 255 for
the scale from its low to its high end, by the logarithm or evenly.
"""

import math
from dataclasses import dataclass

import numpy as np

MOST = 1024  # tiles of a picture, each way
FEW = 40  # rows and columns up to which the weights themselves travel too
OVERVIEW = 192  # tiles of the small map
THUMBNAIL = 112  # tiles of each head where all are shown
MOST_WITH_HEADS = 900  # tiles of a picture, each way, that travels with those
LEVELS = 255
SLACK = 1.25  # how much larger than asked for tiles may be that are there already


@dataclass(frozen=True)
class Scale:
    """Which weight has which level."""

    kind: str  # "log" or "linear"
    low: float
    high: float

    def levels(self, weights: np.ndarray) -> np.ndarray:
        """Weights -> bytes of the same shape.

        >>> Scale("log", 1e-4, 1.0).levels(np.float32([0, 1e-9, 1e-2, 1])).tolist()
        [0, 1, 128, 255]
        """
        if self.kind == "log":
            floor = np.maximum(weights, np.float32(self.low))
            share = np.log(floor / np.float32(self.low)) / np.float32(
                math.log(self.high / self.low)
            )
        else:
            share = (weights - np.float32(self.low)) / np.float32(self.high - self.low)
        found = 1 + np.rint(np.clip(share, 0, 1) * (LEVELS - 1))
        return np.where(weights > 0, found, 0).astype(np.uint8)


@dataclass(frozen=True)
class Picture:
    """Levels of a rectangle of the map.

    `rect` (i, j, rows, cols) in cells; `block` (rows, cols) of one tile. `coarse`: None, "sample"
    (rows that are not exact yet) or "tiles" (larger ones than the screen could show). `numbers`:
    the weights themselves where they are few. `wanted`: what a finer picture would take.
    """

    rect: tuple[int, int, int, int]
    block: tuple[int, int]
    weights: np.ndarray
    coarse: str | None = None
    numbers: bool = False
    wanted: tuple | None = None


def fitting(found, view, pixels, *, head: int, afford: float, kept: dict) -> Picture:
    """The best picture of `view` (i, j, rows, cols) that takes no longer than `afford` scores.

    The weights themselves where each has a pixel; else larger tiles, at most `pixels` (down,
    across) of them, pooled from the map's own tiles where these are fine enough or nothing better
    can be had at once. `kept` holds finer pictures that were made since, by `Picture.wanted`.
    """
    i, _j, rows, cols = view
    block = (_ceil(rows, pixels[0]), _ceil(cols, pixels[1]))
    base = _base(found)
    known = _known(found, head, i, rows, base[0])
    coarser = [-(-want // own) * own for want, own in zip(block, base, strict=True)]
    fine = block[0] >= base[0] and block[1] >= base[1] and max(base) > 1
    effort = rows * cols + int((~known).sum()) * base[0] * found.problem.T
    # Groups of the map's own tiles can be up to twice as large as asked for.
    close = coarser[0] <= SLACK * block[0] and coarser[1] <= SLACK * block[1]
    if fine and (close or effort > afford):
        return _crop(found, view, block, base, head, None if known.all() else "sample")
    wanted = (head, view, tuple(pixels), effort)
    if effort <= afford:
        return sharp(found, wanted)
    if wanted[:3] in kept:
        return kept[wanted[:3]]
    crop = _crop(found, view, block, base, head, "tiles" if known.all() else "sample")
    return Picture(crop.rect, crop.block, crop.weights, crop.coarse, False, wanted)


def sharp(found, wanted) -> Picture:
    """A picture as fine as the screen shows, computed now."""
    head, view, pixels, _effort = wanted
    i, j, rows, cols = view
    if rows <= pixels[0] and cols <= pixels[1]:
        weights = found.window(i, j, rows, cols, head=head).cpu().numpy()
        return Picture(view, (1, 1), weights, numbers=max(rows, cols) <= FEW)
    tiles = min(pixels) if min(rows, cols) > min(pixels) else max(pixels)
    weights = found.region(i, j, rows, cols, tiles=tiles, head=head).cpu().numpy()
    return Picture(view, (_ceil(rows, tiles), _ceil(cols, tiles)), weights)


def in_bands(found, wanted, given_up) -> Picture | None:
    """The same as `sharp`, a band of rows at a time; None as soon as `given_up()` is true."""
    head, view, pixels, _effort = wanted
    i, j, rows, cols = view
    tiles = min(pixels) if min(rows, cols) > min(pixels) else max(pixels)
    block = (_ceil(rows, tiles), _ceil(cols, tiles))
    if max(block) == 1 or block[0] > tiles:
        return None if given_up() else sharp(found, wanted)
    step = tiles // block[0] * block[0]  # rows that come unpooled
    bands = []
    for start in range(0, rows, step):
        if given_up():
            return None
        count = min(step, rows - start)
        band = found.region(i + start, j, count, cols, tiles=tiles, head=head).cpu().numpy()
        times = (block[0], 1)
        bands.append(_pool(band, times, [np.ones(count, np.float32), None], found.problem.pool))
    return Picture(view, block, np.concatenate(bands))


def overview(found, head: int, most: int = OVERVIEW) -> Picture:
    """All of the map, in at most `most` tiles each way."""
    p, base = found.problem, _base(found)
    block = (_ceil(p.S, most), _ceil(p.T, most))
    return _crop(found, (0, 0, p.S, p.T), block, base, head, None)


def scale(kind: str, picture: Picture, keys: int) -> Scale:
    """A logarithmic scale is the same for every view: from a hundredth of an even share to 1.

    An even scale ends at the largest weight of the picture.
    """
    if kind == "log":
        return Scale("log", 10.0 ** math.floor(math.log10(0.01 / keys)), 1.0)
    return Scale("linear", 0.0, max(float(picture.weights.max()), 1e-30))


def strongest_in(found, tile, head: int) -> tuple[int, int]:
    """The cell (i, j) of the largest weight in a rectangle, the first of equal ones."""
    i, j, rows, cols = tile
    best, at = -1.0, (i, j)
    step = max(1, (1 << 22) // cols)
    for start in range(i, i + rows, step):
        count = min(step, i + rows - start)
        part = found.window(start, j, count, cols, head=head).cpu().numpy()
        if part.max() > best:
            r, c = np.unravel_index(part.argmax(), part.shape)
            best, at = float(part.max()), (start + int(r), j + int(c))
    return at


def _ceil(size: int, parts: int) -> int:
    """How many cells each of at most `parts` tiles takes."""
    return -(-size // min(parts, size))


def _base(found) -> tuple[int, int]:
    """The size of the map's own tiles."""
    return found.problem.rows.size, found.problem.columns.size


def _tiles(found, head):
    return found.tiles if found.tiles.dim() == 2 else found.tiles[head]


def _known(found, head, i, rows, base) -> np.ndarray:
    """Which of the map's own rows of tiles under these rows are exact."""
    known = found.known if found.known.dim() == 1 else found.known[head]
    return known[i // base : -(-(i + rows) // base)].cpu().numpy()


def _crop(found, view, block, base, head, coarse) -> Picture:
    """The map's own tiles under a view, several of them pooled to one where the screen has less."""
    i, j, rows, cols = view
    p = found.problem
    top, left = i // base[0], j // base[1]
    bottom, right = _ceil_at(i + rows, base[0]), _ceil_at(j + cols, base[1])
    times = [max(1, -(-want // own)) for want, own in zip(block, base, strict=True)]
    top, left = top // times[0] * times[0], left // times[1] * times[1]
    part = _tiles(found, head)[top:bottom, left:right].cpu().numpy()
    sizes = [
        np.diff(np.append(np.arange(first, last) * own, min(last * own, end))).astype(np.float32)
        for first, last, own, end in (
            (top, bottom, base[0], p.S), (left, right, base[1], p.T))
    ]  # fmt: skip
    pooled = _pool(part, times, sizes, p.pool)
    end = (min(bottom * base[0], p.S), min(right * base[1], p.T))
    start = (top * base[0], left * base[1])
    rect = (*start, end[0] - start[0], end[1] - start[1])
    return Picture(rect, (times[0] * base[0], times[1] * base[1]), pooled, coarse)


def _ceil_at(position: int, size: int) -> int:
    return -(-position // size)


def _pool(part, times, sizes, pool) -> np.ndarray:
    """Groups of times[0] × times[1] tiles as one: the largest, the sum, or the mean by area."""
    for axis in (0, 1):
        if times[axis] == 1:
            continue
        starts = np.arange(0, part.shape[axis], times[axis])
        if pool == "max":
            part = np.maximum.reduceat(part, starts, axis)
        elif pool == "sum":
            part = np.add.reduceat(part, starts, axis)
        else:
            weight = sizes[axis][:, None] if axis == 0 else sizes[axis]
            total = np.add.reduceat(sizes[axis], starts)
            total = total[:, None] if axis == 0 else total
            part = np.add.reduceat(part * weight, starts, axis) / total
    return part
