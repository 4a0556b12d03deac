"""Q and K out of files that a visitor brings: .npz, a pair of .npy, or .safetensors.

Nothing in such a file is trusted: names, kinds and sizes are read from its header and refused
before a number is; nothing is unpickled. What does not fit is one InputError.
"""

from __future__ import annotations

import io
import json
import math
import struct
import zipfile
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np
import torch

from core.errors import InputError, require
from core.longmap_sources import Source

MOST_BYTES = 160 * 2**20  # of one file, and of one array once unpacked
MOST_PAIRS = 131_072**2  # queries × keys, all heads together
LONGEST_HEADER = 2**20
NAMES = {"q": ("q", "query", "queries", "q_proj"), "k": ("k", "key", "keys", "k_proj")}
_SAFETENSORS = {"F16": np.float16, "F32": np.float32, "F64": np.float64, "BF16": np.uint16}
KINDS = (".npz", ".npy", ".safetensors")


@dataclass(frozen=True)
class _Array:
    """One array in a file: what its header says, and how to read it once that is accepted."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    read: Callable[[], np.ndarray]


def read(files: Sequence[tuple[str, bytes]]) -> Source:
    """The q and k in one .npz or .safetensors file, or in two .npy files: (name, content) each.

    Raises InputError: one sentence about what does not fit. A half-precision q or k is widened to
    float32, as the map is computed in that.

    >>> buffer = io.BytesIO(); np.savez(buffer, q=np.ones((4, 8)), k=np.ones((6, 8)))
    >>> read([("mine.npz", buffer.getvalue())]).shape
    (4, 6)
    """
    found = [array for name, content in files for array in _arrays(name, content)]
    chosen = [_pick(found, symbol) for symbol in "qk"]
    _check(*chosen)
    q, k = (_tensor(array) for array in chosen)
    return Source("own", q, k)


def _arrays(name: str, content: bytes) -> list[_Array]:
    """The headers of all arrays in a file."""
    kind = PurePath(name).suffix.lower()
    require(kind in KINDS, "upload-kind", name=name, known=", ".join(KINDS))
    require(len(content) <= MOST_BYTES, "upload-size", name=name, most=MOST_BYTES >> 20)
    with _readable(name):
        if kind == ".npz":
            return _zipped(name, content)
        if kind == ".npy":
            stem = PurePath(name).stem
            return [_plain(stem, len(content), lambda: io.BytesIO(content), name)]
        return _safetensors(content, name)


@contextmanager
def _readable(name: str):
    """Whatever a reader of untrusted bytes may stumble over, as one sentence."""
    try:
        yield
    except InputError:
        raise
    except Exception as cause:
        raise InputError("upload-broken", name=name, kind=PurePath(name).suffix.lower()) from cause


def _zipped(name: str, content: bytes) -> list[_Array]:
    archive = zipfile.ZipFile(io.BytesIO(content))
    members = [member for member in archive.infolist() if member.filename.endswith(".npy")]
    require(len(members) <= 64, "upload-broken", name=name, kind=".npz")
    fitting = [m for m in members if any(_named(m.filename[:-4], symbol) for symbol in "qk")]
    for member in fitting or members:
        # What it will unpack to, so that a small file cannot fill the memory.
        require(member.file_size <= MOST_BYTES, "upload-size", name=name, most=MOST_BYTES >> 20)
    return [
        _plain(m.filename[:-4], m.file_size, lambda m=m: archive.open(m), name)
        for m in fitting or members
    ]


def _plain(stem: str, size: int, opened: Callable, name: str) -> _Array:
    """A .npy: its header says type, order and shape; the numbers follow it to the end."""
    with opened() as stream:
        version = np.lib.format.read_magic(stream)
        require(version in ((1, 0), (2, 0)), "upload-broken", name=name, kind=".npy")
        reader = getattr(np.lib.format, f"read_array_header_{version[0]}_0")
        shape, fortran, dtype = reader(stream, max_header_size=LONGEST_HEADER)
        start = stream.tell()
    require(not dtype.hasobject, "upload-pickled", name=name)
    require(dtype.kind == "f", "upload-type", name=stem, got=str(dtype))
    count = math.prod(shape)
    whole = all(type(n) is int and n >= 0 for n in shape) and start + count * dtype.itemsize == size
    require(whole, "upload-broken", name=name, kind=".npy")

    def numbers() -> np.ndarray:
        with _readable(name), opened() as stream:  # a zip's checksum is compared only at its end
            content = stream.read(size + 1)
        flat = np.frombuffer(content, dtype, count, start)
        return flat.reshape(shape, order="F" if fortran else "C")

    return _Array(stem, str(dtype), shape, numbers)


def _safetensors(content: bytes, name: str) -> list[_Array]:
    """Eight bytes of length, a JSON header, then the numbers."""
    (length,) = struct.unpack_from("<Q", content)
    require(length <= LONGEST_HEADER, "upload-broken", name=name, kind=".safetensors")
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__", None)
    body = memoryview(content)[8 + length :]
    fitting = {n for n in header if any(_named(n, symbol) for symbol in "qk")}
    return [_entry(each, header[each], body, name) for each in sorted(fitting) or list(header)[:3]]


def _entry(each: str, about: dict, body: memoryview, name: str) -> _Array:
    dtype, shape = about["dtype"], tuple(about["shape"])
    require(dtype in _SAFETENSORS, "upload-type", name=each, got=dtype)
    stored = np.dtype(_SAFETENSORS[dtype]).newbyteorder("<")
    start, end = about["data_offsets"]
    whole = all(type(n) is int and n >= 0 for n in (*shape, start, end))
    whole = whole and end - start == math.prod(shape) * stored.itemsize and end <= len(body)
    require(whole, "upload-broken", name=name, kind=".safetensors")

    def numbers() -> np.ndarray:
        flat = np.frombuffer(body, stored, math.prod(shape), start)
        if dtype == "BF16":  # the upper half of a float32
            flat = (flat.astype(np.uint32) << 16).view(np.float32)
        return flat.reshape(shape)

    return _Array(each, dtype, shape, numbers)


def _named(name: str, symbol: str) -> bool:
    """Whether the last part of a name says query or key.

    >>> _named("layer.0.self.query", "q"), _named("arr_0", "q")
    (True, False)
    """
    last = name.replace("/", ".").removesuffix(".weight").rpartition(".")[2].lower()
    return last in NAMES[symbol] or last.startswith(f"{symbol}_") or last.endswith(f"_{symbol}")


def _pick(found: list[_Array], symbol: str) -> _Array:
    """The one array that is named so; of two without a name the first is q, the second k."""
    named = [array for array in found if _named(array.name, symbol)]
    if not named and len(found) == 2 and not any(_named(a.name, s) for a in found for s in "qk"):
        named = [found["qk".index(symbol)]]
    names = ", ".join(array.name for array in found) or "–"
    require(len(named) == 1, "upload-names", symbol=symbol, got=names[:200])
    return named[0]


def _check(q: _Array, k: _Array) -> None:
    """Shapes that fit each other and that can be computed here."""
    for array in (q, k):
        require(
            len(array.shape) in (2, 3) and min(array.shape) >= 1,
            "upload-shape", name=array.name, shape=str(array.shape),
        )  # fmt: skip
        unpacked = 4 * math.prod(array.shape)
        require(unpacked <= MOST_BYTES, "upload-size", name=array.name, most=MOST_BYTES >> 20)
    same = len(q.shape) == len(k.shape)
    require(same, "upload-shape", name=k.name, shape=str(k.shape))
    require(q.shape[-1] == k.shape[-1], "same-width",
            left="q", got=q.shape[-1], right="k", wanted=k.shape[-1])  # fmt: skip
    heads = (q.shape[0], k.shape[0]) if len(q.shape) == 3 else (1, 1)
    require(heads[0] % heads[1] == 0, "groups-divide", h=heads[0], g=heads[1])
    pairs = heads[0] * q.shape[-2] * k.shape[-2]
    require(pairs <= MOST_PAIRS, "upload-pairs", pairs=f"{pairs:,}", most=f"{MOST_PAIRS:,}")


def _tensor(array: _Array) -> torch.Tensor:
    read = array.read()
    with np.errstate(over="ignore", invalid="ignore"):
        numbers = np.ascontiguousarray(read, dtype=np.float32)
    finite = np.isfinite(numbers)
    if not finite.all():
        at = tuple(int(i) for i in np.unravel_index(finite.argmin(), numbers.shape))
        raise InputError("upload-number", name=array.name, got=str(read[at]), index=str(at))
    return torch.from_numpy(numbers.copy() if not numbers.flags.writeable else numbers)
