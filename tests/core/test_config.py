"""Configurations: what follows from what, links, presets, and the numbers inputs are made of."""

import base64
import dataclasses
import itertools
import json
import random
import warnings
import zlib

import numpy as np
import pytest
import torch

import core
from core import PRESETS, AttentionConfig, InputError, inputs
from core.config import AFFORDABLE, EDIT_BYTES


def links(**values):
    """What a link with these values makes, and the ids of what is reported."""
    chosen, problems = AttentionConfig.from_url(values)
    return chosen, [problem.id for problem in problems]


def packed(value) -> str:
    plain = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(zlib.compress(plain)).decode()


# --- fields -----------------------------------------------------------------------------


def test_what_is_left_out_follows():
    c = AttentionConfig(S=5, H=12, h=4)
    assert (c.d_k, c.d_v, c.g, c.T, c.B) == (3, 3, 4, 5, None)
    assert AttentionConfig(S=5, T=9).T == 5  # one sequence has one length
    assert AttentionConfig(S=5, T=9, cross=True).T == 9
    assert AttentionConfig(H=10, h=3, d_k=4).d_v == 4
    example = AttentionConfig(x="example", S=9, H=9, B=3, cross=True, tokens=(("a",),), d_k=3)
    assert (example.S, example.H, example.B, example.cross, example.tokens) == (
        4,
        6,
        None,
        False,
        (),
    )


def test_tokens_decide_lengths():
    two = (("the", "cat", "sat"), ("a", "dog"))
    assert (AttentionConfig(tokens=two).S, AttentionConfig(tokens=two).B) == (3, 2)
    cross = AttentionConfig(cross=True, tokens=two, targets=(("le",),))
    assert (cross.S, cross.T, cross.B) == (1, 3, 2)
    cross = AttentionConfig(cross=True, tokens=two[:1], targets=two)
    assert (cross.S, cross.T, cross.B) == (3, 3, 2)
    assert AttentionConfig(tokens=("the", "cat")) == AttentionConfig(tokens=(("the", "cat"),))


def test_equal_configurations_are_equal_values():
    plain = AttentionConfig(
        S=3, window=(1, 0), lengths=(2,), hidden=((0, 1),), scale=1.0,
        edits=(("X", (0, 1), 2.0),), tokens=(("a", "b", "c"),),
    )  # fmt: skip
    other = AttentionConfig(
        S=np.int64(3), window=[1, 0], lengths=[np.int32(2)], hidden=[[0, 1]], scale=1,
        edits=[["X", [0, 1], 2]], tokens=[["a", "b", "c"]],
    )  # fmt: skip
    assert plain == other
    assert hash(plain) == hash(other)
    assert plain.to_url() == other.to_url()
    with pytest.raises(dataclasses.FrozenInstanceError):
        plain.S = 4


def test_changed_lets_followers_follow():
    c = AttentionConfig(H=12, h=2)
    assert (c.changed(h=4).d_k, c.changed(h=4).d_v, c.changed(h=4).g) == (3, 3, 4)
    assert c.changed(S=9).T == 9
    freed = AttentionConfig(H=12, h=2, d_k=5, d_v=7)
    assert (freed.changed(h=4).d_k, freed.changed(h=4).d_v) == (5, 7)
    assert c.changed() == c
    with pytest.raises(InputError):
        c.changed(h=5)


def test_sizes_and_shapes():
    c = AttentionConfig(S=3, T=5, H=8, h=4, g=2, d_k=3, d_v=2, B=2, cross=True, project=True)
    sizes = {"S": 3, "T": 5, "H": 8, "H_Y": 8, "h": 4, "g": 2, "d_k": 3, "d_v": 2, "B": 2, "r": 2}
    assert c.sizes() == sizes
    wide = c.changed(H_Y=10).input_shapes()
    assert (wide["Y"], wide["W_Q"], wide["W_O"]) == ((2, 3, 10), (10, 12), (8, 10))
    assert AttentionConfig(H=8, H_Y=10).H_Y == 8  # there is no Y
    assert c.input_shapes() == {
        "Y": (2, 3, 8), "X": (2, 5, 8), "W_Q": (8, 12), "W_K": (8, 6), "W_V": (8, 4), "W_O": (8, 8),
    }  # fmt: skip
    made = {symbol: tuple(m.tensor.shape) for symbol, m in inputs.make(c).items()}
    assert made == c.input_shapes()
    assert list(made) == list(c.input_shapes())


def test_what_a_server_affords():
    AttentionConfig(S=1024, h=16, H=16).check_affordable()
    assert AFFORDABLE == 1024 * 1024 * 16
    with pytest.raises(InputError):
        AttentionConfig(S=1025, h=16, H=16).check_affordable()
    AttentionConfig(S=2048, H=768, h=12).check_affordable(most=1 << 26)


# --- links ------------------------------------------------------------------------------------


def test_links_are_short():
    assert AttentionConfig().to_url() == {"S": "4", "H": "6"}
    assert AttentionConfig(S=4, H=6, d_k=3, causal=True, scale=0.0, project=True).to_url() == {
        "S": "4", "H": "6", "d_k": "3", "causal": "1", "scale": "0.0", "project": "1",
    }  # fmt: skip
    assert PRESETS["gpt2-small"].to_url() == {
        "S": "128", "H": "768", "h": "12", "causal": "1", "project": "1",
    }  # fmt: skip


FULL = AttentionConfig(
    S=3, T=2, H=8, h=4, g=2, d_k=5, d_v=1, B=2, seed=-7, cross=True, causal="bottom-right",
    tokens=(("猫", "💩"), ("·", "")), targets=(("a b", 'q"', "\n"),) * 2, window=(-1, 3),
    lengths=(2, 0), hidden=((0, 1), (2, 0)), scale=-1e-7, softcap=1 / 3, project=True, gain=1e10,
    dtype="bfloat16", softmax_dtype="float64",
    edits=(("W_O", (3, 7), 0.1 + 0.2), ("Y", (1, 2, 0), -5)),
)  # fmt: skip


@pytest.mark.parametrize("name", [*PRESETS, "full"])
def test_links_come_back(name):
    c = FULL if name == "full" else PRESETS[name]
    url = c.to_url()
    assert all(isinstance(value, str) for value in url.values())
    assert AttentionConfig.from_url(url) == (c, [])
    trace = core.run(c, device="cpu")
    again = core.run(AttentionConfig.from_url(url)[0], device="cpu")
    assert torch.equal(trace["weights"], again["weights"])


def test_what_cannot_be_read_is_reported_and_the_rest_kept():
    assert links(S="9", H="x", seed="3") == (AttentionConfig(S=9, seed=3), ["link-value"])
    assert links(S="9", causal="maybe", nonsense="1") == (AttentionConfig(S=9), ["link-value"])
    assert links(S="99999999", seed="3") == (AttentionConfig(seed=3), ["size-most"])
    assert links(scale="1e400", S="2") == (AttentionConfig(S=2), ["not-a-number"])
    assert links(scale="nan", softcap="-1", S="2")[0].S == 2
    assert links(S="2", edits=packed([["X", [5, 0], 1]])) == (AttentionConfig(S=2), ["edit-cell"])
    assert links(S="2", hidden=packed([[0, 9]])) == (AttentionConfig(S=2), ["hidden"])
    assert links(S="٤")[0].S == 4  # digits of any script are digits
    chosen, problems = links(S="0", H="10", h="3", seed="5", gain="inf")
    assert (chosen.seed, chosen.H) == (5, 10)
    assert problems == ["size-least", "heads-divide", "not-a-number"]
    # More than a server affords: one size is enough to leave out.
    assert links(S="4096", h="64", H="64")[1] == ["too-large"]
    assert links(S="4096", h="64", H="64")[0] == AttentionConfig(H=64, h=64)
    large, problems = AttentionConfig.from_url({"S": "5000", "h": "2"}, most=1 << 30)
    assert (large.S, large.h, problems) == (5000, 2, [])
    assert links(B="2", lengths="1") == (AttentionConfig(lengths=(1,)), ["lengths"])


BAD = [
    "", " ", "-", "1e400", "-1e400", "nan", "inf", "-inf", "1_0", "0x10", "9" * 5000, "1" * 300,
    "-99999999999999999999", "1.5", "true", "None", "[]", "猫", "\x00", "\ud800", "💩" * 100,
    "1,2,3", ",", "-1,-1", "1e3,2", "eJw", "====", "A" * 5000, packed(b"\xff\xfe"), packed(b""),
    packed(b"[" * 60_000), packed(b"[" * 900 + b"]" * 900), packed(b"0" * EDIT_BYTES * 40),
    packed(b"[" + b"1," * 20_000 + b"1]"), packed({"a": 1}), packed([[]]), packed([None]),
    packed([[1, 2, 3, 4]]), packed(["X", [0, 0], 1]), packed([["X", [0, 0], 1]]), packed(3),
    packed([["X", [0, 0], 10**400]]), packed(b'[["X",[0,0],NaN]]'), packed(b'[["X",[0,0],1e999]]'),
    packed([["X", "00", 1]]), packed([[["X"], [0, 0], 1]]), packed([["X", [0, 0], "1"]]),
    packed([["\ud800"]]), packed([[True, False]]), packed([[0.5, 1]]), packed([[-1, -1]]),
    packed([["a"] * 5000]), packed([["a"], 3]), packed(b"1e5"), packed(b'"' + b"x" * 100 + b'"'),
]  # fmt: skip


@pytest.mark.parametrize("name", [f.name for f in dataclasses.fields(AttentionConfig)])
def test_hostile_links(name):
    """Any text for any field: a configuration that can be computed, and a report if it was bad."""
    for text in BAD:
        chosen, problems = AttentionConfig.from_url({"seed": "8", name: text})
        assert all(isinstance(problem, InputError) for problem in problems)
        assert chosen.seed == 8 or name == "seed"
        changed = chosen != AttentionConfig(seed=8)
        assert changed or problems or AttentionConfig.from_url(chosen.to_url()) == (chosen, [])
        hash(chosen)
        chosen.check_affordable()


def test_a_bomb_is_not_unpacked():
    bomb = packed(b"0" * 50_000_000)
    assert len(bomb) < 70_000
    assert links(tokens=bomb) == (AttentionConfig(), ["link-value"])
    assert links(tokens=packed([["x" * EDIT_BYTES]])) == (AttentionConfig(), ["link-value"])


# --- presets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_presets_can_be_computed(name):
    config = core.preset(name)
    config.check_affordable()
    trace = core.run(config, device="cpu")
    assert not trace.notices
    assert trace["weights"].sum(-1).allclose(torch.ones(()))


def test_presets_are_the_models_they_name():
    sizes = {name: (c.H, c.h, c.d_k) for name, c in PRESETS.items()}
    assert sizes["transformer"] == (512, 8, 64)
    assert sizes["bert-base"] == (768, 12, 64)
    assert sizes["gpt2-small"] == (768, 12, 64)
    assert PRESETS["gpt2-small"].causal
    example = core.run(PRESETS["example"], device="cpu")
    assert example["X"].tolist()[0] == pytest.approx([0.05, 0.11, 0.42, 0.03, 0.89, 0.59])
    assert example["X"].tolist()[3] == pytest.approx([0.93, 0.80, 0.29, 0.82, 0.80, 0.08])
    assert example["Q"].shape == (4, 3)


# --- inputs ------------------------------------------------------------------------------------


def test_numbers_are_the_same_everywhere_and_always():
    """Links must show the same numbers in years to come: these are pinned."""
    t = core.run(AttentionConfig(), device="cpu")
    assert t["X"][0, :3].tolist() == pytest.approx(PINNED["X"], abs=1e-6)
    assert t["W_Q"][0, :3].tolist() == pytest.approx(PINNED["W_Q"], abs=1e-6)
    assert t["output"][3, :3].tolist() == pytest.approx(PINNED["output"], abs=1e-5)


PINNED = {
    "X": [-0.6288255, -1.6605192, 1.4886544],
    "W_Q": [-0.5668476, -0.1963183, -0.7669520],
    "output": [0.0461602, 0.6114943, 0.6621829],
}


def test_one_size_leaves_other_inputs_alone():
    base, longer = (inputs.make(AttentionConfig(S=S, H=8, h=2)) for S in (4, 7))
    for name in ("W_Q", "W_K", "W_V"):
        assert torch.equal(base[name].tensor, longer[name].tensor)
    seeds = [inputs.make(AttentionConfig(seed=seed))["X"].tensor for seed in (0, 1)]
    assert not torch.equal(*seeds)
    assert not torch.equal(base["W_Q"].tensor, base["W_K"].tensor)


def test_gain_is_the_spread_of_a_projection():
    for gain in (0.5, 2.0):
        W = inputs.make(AttentionConfig(H=256, h=4, gain=gain, project=True))
        for name in ("W_Q", "W_V", "W_O"):
            assert float(W[name].tensor.std()) * 16 == pytest.approx(gain, rel=0.02)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
def test_types_round_the_same_draw(dtype):
    wide = inputs.make(AttentionConfig(H=8, h=2))
    t = core.run(AttentionConfig(H=8, h=2, dtype=dtype), device="cpu")
    for name in ("X", "W_Q", "W_V"):
        assert torch.equal(t[name], wide[name].tensor.to(getattr(torch, dtype)))


def test_a_token_is_the_same_row_everywhere():
    lines = (("the", "cat", "the"), ("cat",))
    X = inputs.make(AttentionConfig(tokens=lines, H=6))["X"].tensor
    assert X.shape == (2, 3, 6)
    assert torch.equal(X[0, 0], X[0, 2])
    assert torch.equal(X[0, 1], X[1, 0])
    assert torch.equal(X[1, 1], X[1, 2])  # padding
    assert len({tuple(row) for row in X.flatten(0, 1).tolist()}) == 3
    alone = inputs.make(AttentionConfig(tokens=(("cat",),), H=6))["X"].tensor
    assert torch.equal(alone[0], X[0, 1])
    both = inputs.make(AttentionConfig(tokens=(("cat",),), targets=(("cat",),), cross=True))
    assert torch.equal(both["X"].tensor, both["Y"].tensor)
    spread = inputs.make(AttentionConfig(tokens=(("cat",),), B=3, H=6))["X"].tensor
    assert torch.equal(spread, alone.expand(3, 1, 6))


def test_edits_are_laid_over():
    edits = (("X", (0, 1), 5.0), ("W_V", (5, 0), -1.25), ("X", (0, 1), 6.0))
    plain, t = (core.run(AttentionConfig(edits=e), device="cpu") for e in ((), edits))
    assert float(t["X"][0, 1]) == 6.0
    assert float(t["W_V"][5, 0]) == -1.25
    assert int((t["X"] != plain["X"]).sum()) == 1
    assert torch.equal(t["W_Q"], plain["W_Q"])
    assert "X[0, 1] = 5.0\nX[0, 1] = 6.0" in t.source()


def test_masks_of_a_configuration():
    c = AttentionConfig(S=3, B=2, lengths=(2, 3), hidden=((2, 0),), causal=True, h=2)
    t = core.run(c, device="cpu")
    assert t["mask"][:, 0].int().tolist() == [
        [[1, 0, 0], [1, 1, 0], [0, 1, 0]],
        [[1, 0, 0], [1, 1, 0], [0, 1, 1]],
    ]
    t = core.run(AttentionConfig(S=4, window=(1, 0), lengths=(3,)), device="cpu")
    assert t["mask"].int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 0]]
    for causal, window in itertools.product((True, "bottom-right"), (None, (0, 5))):
        t = core.run(AttentionConfig(S=2, T=4, cross=True, causal=causal, window=window), "cpu")
        offset = 2 if causal == "bottom-right" else 0
        wanted = torch.ones(2, 4).tril(offset)
        wanted = wanted if window is None else wanted.triu(offset)
        assert torch.equal(t["mask"].float(), wanted)


def test_devices():
    assert core.device("cpu") == torch.device("cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = core.device()
    assert found.type in ("cuda", "mps", "cpu")
    assert core.run(AttentionConfig(), device="cpu")["X"].device.type == "cpu"
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="'cuda:1'"):
            core.run(AttentionConfig(), device="cuda:1")


def test_sentences_are_split_at_spaces_and_ideographs():
    assert inputs.split_sentence("The cat, the cat.") == ("The", "cat,", "the", "cat.")
    assert inputs.split_sentence("猫坐在 the垫子 上!") == (
        "猫",
        "坐",
        "在",
        "the",
        "垫",
        "子",
        "上",
        "!",
    )
    assert inputs.split_sentence(" \t\n　") == ()
    assert inputs.split_sentence("안녕 ねこ a𠀀b") == ("안", "녕", "ね", "こ", "a", "𠀀", "b")
    assert inputs.split_sentence("naïve café 💩") == ("naïve", "café", "💩")


def test_a_link_holds_what_a_table_can_and_leaves_out_what_cannot_be_read():
    def edited(n):
        return AttentionConfig(
            H=n, edits=tuple(("W_Q", (i, j), -0.12345678901234567 / (1 + i * n + j))
                             for i in range(n) for j in range(n)),
        )  # fmt: skip

    table = edited(64)
    assert AttentionConfig.from_url(table.to_url()) == (table, [])
    assert table.unlinked() == []
    letters = random.Random(0).choices([chr(0x4E00 + n) for n in range(20_000)], k=60_000)
    assert AttentionConfig(tokens=("".join(letters),)).unlinked() == ["tokens"]
    large = edited(128)
    assert large.unlinked() == ["edits"]
    assert AttentionConfig.from_url(large.to_url()) == (AttentionConfig(H=128), [])
