"""Q and K from files: what is read, and every way to be refused with one sentence."""

import io
import json
import pickle
import re
import struct
import zipfile

import numpy as np
import pytest
import torch
from safetensors.torch import save

from core import longmap_upload
from core.errors import InputError
from core.longmap_upload import read

rng = np.random.default_rng(0)
Q, K = rng.normal(size=(5, 8)).astype("f4"), rng.normal(size=(7, 8)).astype("f4")


def npz(**arrays) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def npy(array, **options) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def refused(*files) -> str:
    with pytest.raises(InputError) as caught:
        read(files)
    return caught.value.id


@pytest.mark.parametrize(
    "files",
    [
        [("a.npz", npz(q=Q, k=K))],
        [("a.npz", npz(layer_k=K, layer_q=Q))],
        [("a.npz", npz(first=Q, second=K))],
        [("a.npz", npz(q=Q, k=np.asfortranarray(K), v=K))],
        [("k.npy", npy(K)), ("q.npy", npy(Q))],
        [("a.npz", npz(q=Q.astype(">f8"), k=K.astype("f8")))],
        [("a.safetensors", save({"k": torch.tensor(K), "q": torch.tensor(Q)}))],
        [("a.safetensors", save({"l.0.key": torch.tensor(K), "l.0.query": torch.tensor(Q)}))],
    ],
)
def test_the_numbers_arrive_as_they_were(files):
    source = read(files)
    np.testing.assert_allclose(source.q.numpy(), Q, rtol=1e-7)
    np.testing.assert_allclose(source.k.numpy(), K, rtol=1e-7)
    assert (source.q.dtype, source.shape, source.heads) == (torch.float32, (5, 7), 1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_every_width_of_float_is_widened_or_narrowed(dtype):
    q, k = torch.tensor(Q).to(dtype), torch.tensor(K).to(dtype)
    source = read([("a.safetensors", save({"q": q, "k": k}))])
    assert torch.equal(source.q, q.float())
    assert torch.equal(source.k, k.float())


def test_heads_may_share_keys():
    source = read([("a.npz", npz(q=np.ones((4, 5, 8)), k=np.ones((2, 7, 8))))])
    assert (source.heads, source.shape, source.k.shape[0]) == (4, (5, 7), 2)


HEADER = {"q": {"dtype": "F32", "shape": [5, 8], "data_offsets": [0, 160]}}


def tensors(header, body=b"") -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def bomb() -> bytes:
    """A small archive that claims to unpack to more than is allowed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("q.npy", bytes(longmap_upload.MOST_BYTES + 1))
    return buffer.getvalue()


def sided(shape: str) -> bytes:
    """A .npy of one number whose header claims this shape."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(4)


def flipped(content: bytes) -> bytes:
    """A zip whose first member has another byte far behind its header than its checksum says."""
    return content[:20_000] + bytes([content[20_000] ^ 255]) + content[20_001:]


NAN = np.where(np.arange(40).reshape(5, 8) == 9, np.nan, Q)


@pytest.mark.parametrize(
    ("id", "files"),
    [
        ("upload-kind", [("q.csv", b"1,2")]),
        ("upload-kind", [("model.pt", pickle.dumps({"q": 1}))]),
        ("upload-size", [("a.npz", bomb())]),
        ("upload-broken", [("a.npz", b"PK\3\4 nothing")]),
        ("upload-broken", [("a.npz", npz(q=Q, k=K)[:200])]),
        ("upload-broken", [("q.npy", b"")]),
        ("upload-broken", [("q.npy", npy(Q)[:-4]), ("k.npy", npy(K))]),
        ("upload-broken", [("q.npy", npy(Q) + b"more"), ("k.npy", npy(K))]),
        ("upload-broken", [("a.safetensors", b"\xff" * 40)]),
        ("upload-broken", [("a.safetensors", tensors({"q": [1], "k": 2}))]),
        ("upload-broken", [("a.safetensors", tensors(HEADER | {"k": HEADER["q"]}, b"0" * 100))]),
        ("upload-pickled", [("a.npz", npz(q=np.array([{}, None]), k=K))]),
        ("upload-type", [("a.npz", npz(q=Q.astype("i4"), k=K))]),
        ("upload-type", [("a.npz", npz(q=Q.astype("c8"), k=K))]),
        ("upload-names", [("a.npz", npz(q=Q))]),
        ("upload-names", [("a.npz", npz(a=Q, b=K, c=K))]),
        ("upload-names", [("a.npz", npz(x_q=Q, y_q=Q, k=K))]),
        ("upload-names", [("a.npz", npz())]),
        ("upload-shape", [("a.npz", npz(q=Q[0], k=K))]),
        ("upload-shape", [("a.npz", npz(q=Q, k=K[None]))]),
        ("upload-shape", [("a.npz", npz(q=Q[:0], k=K))]),
        ("same-width", [("a.npz", npz(q=Q, k=K[:, :4]))]),
        ("groups-divide", [("a.npz", npz(q=np.ones((4, 5, 8)), k=np.ones((3, 7, 8))))]),
        ("upload-number", [("a.npz", npz(q=NAN, k=K))]),
        ("upload-number", [("a.npz", npz(q=Q * 1e30 * np.float64(1e30), k=K))]),
        ("upload-broken", [("q.npy", sided("(True, 1)")), ("k.npy", npy(K[:1, :1]))]),
        ("upload-broken", [("a.npz", flipped(npz(q=np.ones((900, 8), "f4"), k=K)))]),
    ],
)
def test_what_does_not_fit_is_one_sentence(id, files):
    assert refused(*files) == id


@pytest.mark.parametrize("number", [np.nan, -np.inf, 1e300])
def test_a_number_that_is_none_here_is_named(number):
    q = Q.astype("f8")
    q[1, 2] = number
    with pytest.raises(InputError, match=rf"q holds {re.escape(str(number))} at \(1, 2\): "):
        read([("a.npz", npz(q=q, k=K))])


def test_too_many_pairs_are_refused_before_they_are_read():
    """Not a number of it is in memory: the file is all zeros, and is not read."""
    many = np.zeros((200_000, 1), "f4")
    assert refused(("a.npz", npz(q=many, k=many))) == "upload-pairs"


def test_nothing_is_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return (tmp_path.joinpath("sprung").touch, ())

    trap = np.array([Trap()], dtype=object)
    assert refused(("q.npy", npy(trap)), ("k.npy", npy(K))) == "upload-pickled"
    assert not (tmp_path / "sprung").exists()
