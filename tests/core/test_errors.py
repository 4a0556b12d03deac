"""Bad input: each gets its own sentence, with the names and sizes at hand, and nothing else."""

import ast
import contextlib
import math
import pickle
from pathlib import Path
from string import Formatter

import numpy as np
import pytest
import torch

import core
from core import AttentionConfig, InputError, Notice, checks, masks
from core.config import LARGEST
from core.errors import SENTENCES

ROOT = Path(core.__file__).parent
ENGINE = ("attention", "checks", "config", "masks", "notices", "trace")
INF, NAN, MOST = math.inf, math.nan, LARGEST["S"]


PAIRS = ("window", "rotary", "norm")  # arguments that are tuples themselves


def ones(*shape, dtype=torch.float32):
    return torch.ones(*shape, dtype=dtype)


def attend(q=(2, 4), k=(3, 4), v=(3, 5), **about):
    q, k, v = (ones(*x) if isinstance(x, tuple) else x for x in (q, k, v))
    about = {
        n: ones(*x) if isinstance(x, tuple) and n not in PAIRS else x for n, x in about.items()
    }
    return core.attend(q, k, v, **about)


def alike(**about):
    """As many queries as keys."""
    return attend(k=(2, 4), v=(2, 5), **about)


def heads(q=(2, 4, 3, 6), k=(2, 2, 5, 6), v=(2, 2, 5, 6), **about):
    return attend(q, k, v, **about)


def project(X=(3, 6), W_Q=(6, 4), W_K=(6, 4), W_V=(6, 4), W_O=None, Y=None, **about):
    shapes = [x if x is None else ones(*x) for x in (X, W_Q, W_K, W_V, W_O)]
    if Y is not None:
        return core.cross_attention(ones(*Y), *shapes, **about)
    return core.self_attention(*shapes, **about)


def config(**fields):
    return AttentionConfig(**fields)


def trace():
    return core.run(AttentionConfig(causal=True), device="cpu")


def at(value, *shape):
    """Ones, the last of them replaced."""
    x = ones(*shape)
    x.view(-1)[-1] = value
    return x


# (what is asked, the sentence, what it must say)
WRONG = [
    (lambda: config(S=0), "size-least", {"name": "S", "got": 0, "least": 1}),
    (lambda: config(h=-2), "size-least", {"name": "h", "got": -2, "least": 1}),
    (lambda: config(d_v=0), "size-least", {"name": "d_v", "got": 0}),
    (lambda: project(heads=0), "size-least", {"name": "heads", "got": 0, "least": 1}),
    (lambda: config(S=MOST + 1), "size-most", {"name": "S", "got": MOST + 1, "most": MOST}),
    (lambda: config(tokens=(("a",), ()) * LARGEST["B"]), "size-most",
     {"name": "B", "got": 2 * LARGEST["B"]}),
    (lambda: config(seed=2**60), "size-most", {"name": "seed", "got": 2**60, "most": 2**53}),
    (lambda: config(S=2.5), "not-whole", {"name": "S", "got": "2.5"}),
    (lambda: config(S="4"), "not-whole", {"name": "S", "got": "'4'"}),
    (lambda: config(S=True), "not-whole", {"name": "S", "got": "True"}),
    (lambda: config(S=None), "not-whole", {"name": "S", "got": "None"}),
    (lambda: config(H=None), "not-whole", {"name": "H", "got": "None"}),
    (lambda: config(h=None), "not-whole", {"name": "h", "got": "None"}),
    (lambda: config(seed=None), "not-whole", {"name": "seed", "got": "None"}),
    (lambda: config(gain=None), "not-a-number", {"name": "gain", "got": "None"}),
    (lambda: config(scale=NAN), "not-a-number", {"name": "scale", "got": "nan"}),
    (lambda: config(gain=10**400), "not-a-number", {"name": "gain"}),
    (lambda: config(edits=(("X", (0, 0), INF),)), "not-a-number", {"name": "X", "got": "inf"}),
    (lambda: attend(scale=INF), "not-a-number", {"name": "scale", "got": "inf"}),
    (lambda: attend(scale="big"), "not-a-number", {"name": "scale", "got": "'big'"}),
    (lambda: attend(softcap=NAN), "not-a-number", {"name": "softcap", "got": "nan"}),
    (lambda: attend(eps=-1e-6), "size-least", {"name": "eps", "got": -1e-6, "least": 0}),
    (lambda: project(eps="small"), "not-a-number", {"name": "eps", "got": "'small'"}),
    (lambda: attend(pairs="half"), "unknown-choice", {"name": "pairs", "got": "half"}),
    (lambda: project(heads=1.5), "not-whole", {"name": "heads", "got": "1.5"}),
    (lambda: project(heads=4, kv_heads="2"), "not-whole", {"name": "kv_heads"}),
    (lambda: attend(scale=1e39), "out-of-range", {"name": "scale", "dtype": "float32"}),
    (lambda: attend(scale=1e-60), "out-of-range", {"name": "scale", "got": 1e-60}),
    (lambda: attend(softcap=1e39), "out-of-range", {"name": "softcap", "most": "3.4e+38"}),
    (lambda: config(edits=(("X", (0, 0), 1e39),)), "out-of-range", {"name": "X[0, 0]"}),
    (lambda: config(gain=1e5, dtype="float16"), "out-of-range", {"name": "gain", "got": 1e5}),
    (lambda: config(gain=-2e38, dtype="float64"), "out-of-range", {"dtype": "float32"}),
    (lambda: config(gain=1e300), "out-of-range", {"name": "gain", "most": "4.25e+37"}),
    (lambda: config(causal="left"), "unknown-choice", {"name": "causal", "got": "'left'"}),
    (lambda: config(x=["seeded"]), "unknown-choice", {"name": "x"}),
    (lambda: config(dtype="int8"), "unknown-choice", {"name": "dtype", "got": "'int8'"}),
    (lambda: attend(softmax_dtype=torch.int8), "unknown-choice", {"got": "int8"}),
    (lambda: attend(softmax_dtype="nn"), "unknown-choice", {"name": "softmax_dtype"}),
    (lambda: core.preset("gpt5"), "unknown-choice", {"name": "preset", "got": "gpt5"}),
    (lambda: core.preset(["gpt5"]), "unknown-choice", {"got": "['gpt5']"}),
    (lambda: core.device("abacus"), "unknown-choice", {"name": "device", "got": "'abacus'"}),
    (lambda: config(H=10, h=3), "heads-divide", {"H": 10, "h": 3}),
    (lambda: project(W_Q=(6, 5), heads=2), "width-divide", {"name": "W_Q", "width": 5, "heads": 2}),
    (lambda: project(W_V=(6, 5), heads=2), "width-divide", {"name": "W_V"}),
    (lambda: config(H=12, h=4, g=3), "groups-divide", {"h": 4, "g": 3}),
    (lambda: heads(k=(2, 3, 5, 6), v=(2, 3, 5, 6)), "groups-divide", {"h": 4, "g": 3}),
    (lambda: project(heads=2, kv_heads=4), "groups-divide", {"h": 2, "g": 4}),
    (lambda: project(X=(6,)), "rank", {"name": "X", "rank": 1, "shape": (6,)}),
    (lambda: project(X=(1, 2, 3, 6)), "rank", {"name": "X", "rank": 4}),
    (lambda: project(Y=(1, 3, 6)), "rank", {"name": "Y", "rank": 3, "wanted": 2}),
    (lambda: project(W_K=(1, 6, 4)), "rank", {"name": "W_K", "rank": 3, "wanted": "2"}),
    (lambda: attend(q=(1, 2, 4)), "rank-mixed", {"q": 3, "k": 2, "v": 2}),
    (lambda: attend((3, 2, 4), (3, 3, 4), (3, 3, 4)), "rank-mixed", {"q": 3, "k": 3, "v": 3}),
    (lambda: attend(q=(0, 4)), "empty", {"name": "q", "shape": (0, 4)}),
    (lambda: project(X=(0, 6)), "empty", {"name": "X", "shape": (0, 6)}),
    (lambda: project(W_Q=(6, 0), W_K=(6, 0)), "empty", {"name": "W_Q"}),
    (lambda: project(X=(3, 5)), "inner", {"left": "X", "right": "W_Q", "got": 5, "wanted": 6}),
    (lambda: project(Y=(3, 5)), "inner", {"left": "Y", "right": "W_Q", "right_shape": (6, 4)}),
    (lambda: project(W_O=(5, 6)), "inner", {"left": "output", "left_shape": (3, 4), "got": 4}),
    (lambda: project(W_O=(5, 6), heads=2), "inner", {"left": "merged", "right": "W_O"}),
    (lambda: attend(k=(3, 5)), "same-width", {"left": "q", "right": "k", "got": 4, "wanted": 5}),
    (lambda: project(W_K=(6, 5)), "same-width", {"left": "Q", "right": "K", "got": 4, "wanted": 5}),
    (lambda: attend(v=(4, 5)), "same-length", {"left": "k", "right": "v", "got": 3, "wanted": 4}),
    (lambda: heads(past_key=(2, 2, 3, 6), past_value=(2, 2, 4, 6)), "same-length",
     {"left": "past_key", "right": "past_value", "got": 3, "wanted": 4}),
    (lambda: heads(k=(3, 2, 5, 6)), "same-batch", {"left": "q", "right": "k", "got": 2}),
    (lambda: heads(v=(3, 2, 5, 6)), "same-batch", {"left": "q", "right": "v", "wanted": 3}),
    (lambda: project(X=(2, 3, 6), Y=(1, 3, 6)), "same-batch", {"left": "Y", "right": "X"}),
    (lambda: config(cross=True, tokens=(("a",),) * 2, targets=(("b",),) * 3), "same-batch",
     {"left": "targets", "right": "tokens", "got": 3, "wanted": 2}),
    (lambda: heads(v=(2, 4, 5, 6)), "same-heads", {"left": "k", "right": "v", "got": 2}),
    (lambda: attend(k=ones(3, 4, dtype=torch.float64)), "mixed-dtype",
     {"left": "q", "right": "k", "got": torch.float32, "wanted": torch.float64}),
    (lambda: attend(mask=torch.zeros(2, 3, dtype=torch.float64)), "mixed-dtype",
     {"left": "scores", "right": "mask", "wanted": torch.float64}),
    (lambda: checks.floating({"q": ones(2, 4), "k": torch.ones(3, 4, device="meta")}),
     "mixed-device", {"left": "q", "right": "k", "wanted": torch.device("meta")}),
    (lambda: attend(q=[[1, 2, 3, 4]]), "not-float", {"name": "q", "got": torch.int64}),
    (lambda: attend(q=ones(2, 4).cfloat()), "not-float", {"got": torch.complex64}),
    (lambda: attend(q=ones(2, 4).to(torch.float8_e4m3fn)), "not-float", {"name": "q"}),
    (lambda: attend(q=None), "not-a-tensor", {"name": "q", "got": "NoneType"}),
    (lambda: attend(v="cat"), "not-a-tensor", {"name": "v", "got": "str"}),
    (lambda: attend(k=[[1.0], [2.0, 3.0]]), "not-a-tensor", {"name": "k", "got": "list"}),
    (lambda: attend(k={"k": 1}), "not-a-tensor", {"name": "k", "got": "dict"}),
    (lambda: attend(k=np.array([None])), "not-a-tensor", {"name": "k", "got": "ndarray"}),
    (lambda: attend(q=torch.ones(2, 4, device="meta")), "not-a-tensor", {"got": "meta"}),
    (lambda: attend(mask="causal"), "not-a-tensor", {"name": "mask", "got": "str"}),
    (lambda: project(Y=None, X=None), "not-a-tensor", {"name": "X", "got": "NoneType"}),
    (lambda: core.cross_attention(None, *[ones(2, 2)] * 4), "not-a-tensor", {"name": "Y"}),
    (lambda: attend(q=at(INF, 2, 4)), "infinite", {"name": "q", "index": (1, 3)}),
    (lambda: attend(v=at(-INF, 3, 5)), "infinite", {"name": "v", "index": (2, 4)}),
    (lambda: config(dtype="float16", edits=(("X", (1, 2), 1e5),)), "out-of-range",
     {"name": "X[1, 2]", "got": 1e5, "dtype": "float16", "most": "6.55e+04"}),
    (lambda: config(scale=1e-121), "out-of-range", {"name": "scale", "got": 1e-121}),
    (lambda: config(softcap=1e5, dtype="float16"), "out-of-range", {"name": "softcap"}),
    (lambda: attend(mask=ones(2, 2, 3).bool()), "mask-rank-3", {"shape": (2, 2, 3)}),
    (lambda: attend(mask=ones(3).bool()), "mask-rank", {"rank": 1, "shape": (3,)}),
    (lambda: attend(mask=ones(2, 2).bool()), "mask-shape",
     {"shape": (2, 2), "wanted": (1, 1, 2, 3), "T": 3}),
    (lambda: attend(mask=ones(2, 1).bool()), "mask-shape", {"shape": (2, 1), "T": 3}),
    (lambda: heads(mask=ones(3, 1, 3, 5).bool()), "mask-shape", {"wanted": (2, 4, 3, 5)}),
    (lambda: heads(mask=ones(2, 2, 3, 5).bool()), "mask-shape", {"shape": (2, 2, 3, 5)}),
    (lambda: attend(mask=at(INF, 2, 3)), "mask-infinite", {"index": (1, 2)}),
    (lambda: attend(mask=[[1, 0, 1]]), "mask-type", {"got": torch.int64}),
    (lambda: masks.from_multihead(ones(2, 2)), "mask-type", {"got": torch.float32}),
    (lambda: attend(window=(1,)), "window", {"got": "(1,)"}),
    (lambda: attend(window=(1, -2)), "window", {"got": "(1, -2)"}),
    (lambda: attend(window=3), "window", {"got": "3"}),
    (lambda: config(window=(1.5, 0)), "window", {"got": "(1.5, 0)"}),
    (lambda: attend(causal="top-left"), "causal", {"got": "'top-left'"}),
    (lambda: attend(causal=[True]), "causal", {"got": "[True]"}),
    (lambda: heads(past_key=(2, 2, 3, 6)), "past-pair",
     {"given": "past_key", "missing": "past_value"}),
    (lambda: project(past_value=ones(2, 4)), "past-pair", {"given": "past_value"}),
    (lambda: heads(past_key=(2, 4, 3, 6), past_value=(2, 4, 3, 6)), "past-shape",
     {"name": "past_key", "shape": (2, 4, 3, 6), "wanted": "(2, 2, P, 6)"}),
    (lambda: heads(past_key=(2, 2, 3, 6), past_value=(2, 2, 3, 7)), "past-shape",
     {"name": "past_value", "wanted": "(2, 2, P, 6)"}),
    (lambda: attend(past_key=(1, 1, 3, 4), past_value=(1, 1, 3, 5)), "past-shape",
     {"name": "past_key", "wanted": "(P, 4)"}),
    (lambda: project(heads=2, past_key=ones(1, 3, 2), past_value=ones(1, 3, 2)), "past-shape",
     {"wanted": "(2, P, 2)"}),
    (lambda: config(rotary="halves", cross=True), "rotary-cross", {}),
    (lambda: config(rotary="halves", H=6, h=2), "rotary-odd", {"d_k": 3}),
    (lambda: config(rotary="near"), "unknown-choice", {"name": "rotary"}),
    (lambda: alike(rotary=ones(2, 4)), "rotary-pair", {"got": "Tensor"}),
    (lambda: alike(rotary=(ones(2, 4), None)), "rotary-pair", {"got": "tuple"}),
    (lambda: alike(rotary=(ones(2, 6), ones(2, 6))), "rotary-shape", {"shape": (2, 6)}),
    (lambda: alike(rotary=(ones(2, 3), ones(2, 3))), "rotary-shape", {"name": "cos"}),
    (lambda: alike(rotary=(ones(3, 4), ones(3, 4))), "rotary-shape", {"shape": (3, 4)}),
    (lambda: alike(rotary=(ones(2, 4), ones(2, 2))), "rotary-width", {"sin": (2, 2)}),
    (lambda: attend(rotary=(ones(2, 4), ones(2, 4))),
     "rotary-length", {"S": 2, "N": 3}),
    (lambda: alike(rotary=(ones(2, 4), ones(2, 4)), pairs="near"), "unknown-choice",
     {"name": "pairs", "known": "halves, interleaved"}),
    (lambda: alike(rotary=(ones(2, 4).double(), ones(2, 4).double())), "mixed-dtype",
     {"right": "cos"}),
    (lambda: alike(norm=ones(4)), "gain-pair", {"got": "Tensor"}),
    (lambda: alike(norm=(ones(3), ones(4))), "gain-shape", {"name": "gain_Q", "d_k": 4}),
    (lambda: alike(norm=(ones(4), ones(4)), eps=NAN), "not-a-number", {"name": "eps"}),
    (lambda: attend(softcap=0), "softcap", {"got": 0.0}),
    (lambda: config(softcap=-1), "softcap", {"got": -1.0}),
    (lambda: config(S=4096, h=2).check_affordable(), "too-large",
     {"cells": "33,554,432", "most": "16,777,216"}),
    (lambda: config(H=4096, h=64, d_k=1024).check_affordable(), "too-large-input",
     {"name": "W_Q", "shape": (4096, 65536), "cells": "268,435,456"}),
    (lambda: trace()["Z"], "no-symbol", {"got": "Z"}),
    (lambda: trace().explain("Q", (4, 0)), "no-cell", {"symbol": "Q", "index": (4, 0)}),
    (lambda: trace().gradient("mask", (0, 0)), "no-gradient", {"symbol": "mask"}),
    (lambda: config(edits=(("Y", (0, 0), 1),)), "edit-symbol",
     {"got": "Y", "known": "X, W_Q, W_K, W_V"}),
    (lambda: config(edits=(("X", (0, 6), 1),)), "edit-cell",
     {"symbol": "X", "shape": (4, 6), "index": (0, 6)}),
    (lambda: config(edits=(("X", (0, -1), 1),)), "edit-cell", {"index": (0, -1)}),
    (lambda: config(edits=(("X", (0,), 1),)), "edit-cell", {"index": (0,)}),
    (lambda: config(edits=("X",)), "edit", {"got": "'X'"}),
    (lambda: config(edits=3), "edit", {"got": "3"}),
    (lambda: config(edits=(("X", (0.5, 0), 1),)), "edit", {"got": "('X', (0.5, 0), 1)"}),
    (lambda: config(tokens="the cat"), "tokens", {"name": "tokens", "got": "'the cat'"}),
    (lambda: config(tokens=((1, 2),)), "tokens", {"got": "((1, 2),)"}),
    (lambda: config(targets=(("\ud800",),)), "tokens", {"name": "targets"}),
    (lambda: config(lengths=(5,)), "lengths", {"got": "(5,)", "T": 4, "B": 1}),
    (lambda: config(lengths=(1, 2)), "lengths", {"got": "(1, 2)", "B": 1}),
    (lambda: config(lengths=3), "lengths", {"got": "3"}),
    (lambda: masks.padding([1.5], 3), "lengths", {"got": [1.5], "T": 3}),
    (lambda: config(hidden=((0, 4),)), "hidden", {"got": "(0, 4)", "S": 4, "T": 4}),
    (lambda: config(hidden=((-1, 0),)), "hidden", {"got": "(-1, 0)"}),
    (lambda: config(hidden=(3,)), "hidden", {"got": "3"}),
    (lambda: config(hidden=7), "hidden", {"got": "7"}),
    (lambda: core.Trace.load("no such file"), "file",
     {"name": "no such file", "reason": "FileNotFoundError"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("ask", "id", "facts"), WRONG, ids=[f"{n}-{id}" for n, (_, id, _) in enumerate(WRONG)]
)
def test_each_mistake_has_its_sentence(ask, id, facts):
    with pytest.raises(InputError) as problem:
        ask()
    error = problem.value
    assert error.id == id
    assert {name: error.facts.get(name) for name in facts} == facts
    assert str(error) == SENTENCES[id].format(**error.facts)
    gaps = {name for _, name, _, _ in Formatter().parse(SENTENCES[id]) if name}
    assert {gap.split(".")[0] for gap in gaps} == set(error.facts)  # nothing missing, none unsaid


def notices():
    q = ones(2, 4)
    nan = q.clone()
    nan[1, 2] = NAN
    with pytest.warns(UserWarning, match="only 0 and 1"):
        odd = core.attend(q, q, q, mask=torch.eye(2))
    return [
        core.attend(q, q, q, mask=ones(2, 2).tril(-1).bool()).notices,
        core.attend(nan, q, q).notices,
        core.attend(q * 1e20, q * 1e20, q).notices,
        odd.notices,
    ]


def test_notices_say_what_a_reader_should_know():
    assert [str(notice) for found in notices() for notice in found] == [
        "1 of 2 queries may see no key, first (0,): their weights and output are 0.",
        "NaN first stands in Q at (1, 2).",
        "scores passes the range of float32 at (0, 0) and became infinite.",
        SENTENCES["mask-looks-boolean"],
    ]


def test_link_values_are_reported():
    _, problems = AttentionConfig.from_url({"S": "four"})
    assert [str(p) for p in problems] == [
        "S = four in the link cannot be read, so the default is used."
    ]


def literals(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}


def test_every_sentence_of_the_engine_is_heard_here():
    """Each id that the engine can raise is raised above; no sentence stands there for nothing."""
    raised = {id for _, id, _ in WRONG} | {"link-value"}
    raised |= {notice.id for found in notices() for notice in found}
    engine = set().union(*(literals(ROOT / f"{name}.py") for name in ENGINE))
    assert raised == engine & SENTENCES.keys()
    others = [*ROOT.rglob("*.py"), *(ROOT.parent / "pages").rglob("*.py")]
    used = set().union(*(literals(path) for path in others if path.name != "errors.py"))
    assert not SENTENCES.keys() - used


def test_errors_travel_between_processes():
    error = InputError("heads-divide", H=10, h=3)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.id, again.facts) == (InputError, error.id, error.facts)
    assert str(again) == str(error)
    notice = pickle.loads(pickle.dumps(Notice("nan", symbol="Q", index=(0,))))
    assert type(notice) is Notice


def test_what_was_given_does_not_break_the_line():
    """A tensor, for one, is written on several."""
    for ask in (
        lambda: attend(causal=torch.ones(3, 3)),
        lambda: attend(window=np.ones((3, 3))),
        lambda: config(hidden=np.ones((99, 99))),
        lambda: config(S=torch.ones(3, 3)),
        lambda: trace()[torch.ones(3, 3)],
    ):
        with pytest.raises(InputError) as problem:
            ask()
        assert "\n" not in str(problem.value)
        assert len(str(problem.value)) < 300


def test_an_error_is_a_value_error():
    with pytest.raises(ValueError, match="H = 10 cannot be split into h = 3"):
        AttentionConfig(H=10, h=3)


JUNK = {
    "None": None, "text": "x", "int": 3, "empty list": [], "nested empty list": [[]], "dict": {},
    "object": object(), "NaN": NAN, "0 dims": torch.tensor(1.0), "1 dim": torch.ones(2),
    "5 dims": torch.ones(1, 2, 3, 4, 5), "no columns": np.zeros((2, 0)),
    "text array": np.array("x"),
    "sparse": torch.ones(2, 2).to_sparse(), "whole numbers": torch.ones(2, 2).int(),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:the float mask holds only 0 and 1")
@pytest.mark.parametrize("name", JUNK)
def test_junk_is_refused_or_taken(name):
    """Whatever is handed in where a tensor belongs: a trace of numbers, or an InputError."""
    for place in range(5):
        given = [ones(2, 2)] * 5
        given[place] = JUNK[name]
        q, k, v, more, last = given
        for ask in (
            lambda: core.attend(q, k, v, mask=more),  # noqa: B023
            lambda: core.attend(q, k, v, past_key=more, past_value=last),  # noqa: B023
            lambda: core.self_attention(*given),  # noqa: B023
            lambda: core.cross_attention(*given),  # noqa: B023
            lambda: core.self_attention(*given[:4], mask=last),  # noqa: B023
        ):
            with contextlib.suppress(InputError):
                assert ask()["output"].isfinite().all()
