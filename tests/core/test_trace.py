"""Traces: what each step holds, the arithmetic of a cell, saving and loading, hostile files."""

import gc
import itertools
import json
import math
import struct
import weakref
from fractions import Fraction

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import core
from core import trace as traces
from core.numbers import write
from core.ops import Given, axes

# --- a step -----------------------------------------------------------------------------


def test_every_step_is_what_it_says(example):
    for step in example.steps:
        tensor = example[step.symbol]
        assert step.shape == tuple(tensor.shape)
        assert step.strides == tensor.stride()
        wanted = [math.prod(example.sizes[atom] for atom in axis) for axis in axes(step.dims)]
        given = not step.reads
        wanted = [1 if given and n == 1 else m for n, m in zip(step.shape, wanted, strict=True)]
        assert step.shape == tuple(wanted)  # a mask may have sides of 1
        assert all(read in example for read in step.reads)
        assert given or step.latex.count("=") >= 1
        assert step.code.startswith(
            ("wide", "converted", "even", "blind", "partners", f"{step.symbol} = ")
        )


def test_no_nan_unless_one_came_in(example, request):
    found = [s.symbol for s in example.steps if bool(s.tensor.isnan().any())]
    if "not a number" in request.node.name:
        assert found == ["K", "scores", "scaled", "masked", "weights", "output"]
        assert example.notices[0].facts == {"symbol": "K", "index": (0, 1, 2, 3)}
    else:
        assert not found
        assert "nan" not in [notice.id for notice in example.notices]


def test_rows_sum_to_one_or_to_nothing(example, request):
    if "not a number" in request.node.name:
        return  # its rows are NaN
    weights = example["weights"]
    assert bool(((weights >= 0) & (weights <= 1)).all())
    sums, blind = weights.double().sum(-1), (weights == 0).all(-1)
    used = getattr(torch, example.step("weights").op.dtype or "float64")  # softmax's own type
    eps = max(torch.finfo(kind).eps for kind in (weights.dtype, used)) * weights.shape[-1]
    torch.testing.assert_close(sums[~blind], torch.ones_like(sums[~blind]), rtol=0, atol=eps)
    for symbol in ("masked", "biased"):
        if symbol in example and "overflow" not in request.node.name:
            assert bool((blind == (example[symbol] == -math.inf).all(-1)).all())
            break
    else:
        assert "overflow" in request.node.name or not bool(blind.any())
    assert example["output"][blind].eq(0).all()


def test_views_and_copies_are_told_apart():
    t = core.run(core.AttentionConfig(S=3, H=8, h=2, B=2, project=True), device="cpu")
    shares = {step.symbol: step.shares for step in t.steps if step.shares}
    assert shares == {
        "Q_split": "Q", "Q_heads": "Q_split", "K_split": "K", "K_heads": "K_split",
        "V_split": "V", "V_heads": "V_split", "swapped": "output",
    }  # fmt: skip
    step = {s.symbol: s for s in t.steps}
    assert step["Q"].strides == (24, 8, 1)
    assert step["Q_split"].strides == (24, 8, 4, 1)
    assert step["Q_heads"].strides == (24, 4, 8, 1)
    assert step["merged"].bytes == 2 * 3 * 8 * 4
    assert step["Q_heads"].bytes == 0
    assert step["scores"].flops == 2 * 2 * 2 * 3 * 3 * 4  # 2·B·h·S·S·d_k
    assert step["Q"].flops == 2 * 2 * 3 * 8 * 8  # 2·B·S·H·H
    alone = core.run(core.AttentionConfig(S=1, H=4, h=1, project=True), device="cpu")
    assert "merged" not in alone


def test_formulas():
    t = core.run(core.AttentionConfig(S=3, H=8, h=2, project=True, causal=True), device="cpu")
    latex = {s.symbol: s.latex for s in t.steps}
    assert latex["X"] == "X"
    assert latex["Q"] == r"Q = X \, W_Q"
    assert latex["scores"] == (r"\mathrm{scores} = Q_{\mathrm{heads}} \, K_{\mathrm{heads}}^\top")
    assert latex["scaled"] == r"\mathrm{scaled} = \frac{\mathrm{scores}}{\sqrt{d_k}}"
    assert latex["weights"] == r"\mathrm{weights} = \mathrm{softmax}(\mathrm{masked})"
    assert latex["output"] == r"\mathrm{output} = \mathrm{weights} \, V_{\mathrm{heads}}"


def test_a_trace_is_a_mapping_by_symbol():
    t = core.run(core.AttentionConfig(), device="cpu")
    assert list(t) == [s.symbol for s in t.steps]
    assert len(t) == len(t.steps) == 11
    assert "weights" in t
    assert "masked" not in t
    assert dict(t).keys() == set(t)
    assert t == t
    assert t != core.run(core.AttentionConfig(), device="cpu")
    assert len({t, t}) == 1
    with pytest.raises(TypeError):
        t.stored["X"] = t["X"]
    with pytest.raises(core.InputError, match="no step nothing"):
        t["nothing"]
    with pytest.raises(AttributeError):
        t.steps[0].step = None


def test_a_trace_goes_when_it_is_let_go():
    """Its memory is free at once, without the garbage collector."""
    t = core.run(core.AttentionConfig(h=2, causal=True), device="cpu")
    assert t.steps[-1].tensor is t["merged"]
    assert t.steps == t.steps
    assert not t.notices
    t.gradient("merged", (0, 0))
    gone = weakref.ref(t)
    gc.disable()
    try:
        del t
        assert gone() is None
    finally:
        gc.enable()


# --- the arithmetic of a cell -----------------------------------------------------------


def test_explain(example):
    """Elements of every step: the tensor's value, from terms that read real cells and add up."""
    for step in example.steps:
        places = list(itertools.product(*map(range, step.shape)))
        for index in places[:: 1 + len(places) // 50]:
            check_cell(example, step, index)


def check_cell(trace, step, index):
    cell, where = trace.explain(step.symbol, index), (step.symbol, index)
    held = float(trace[step.symbol][index])
    assert (cell.symbol, cell.index) == where
    assert same(cell.value, held), where
    assert cell.text.endswith(f"= {write(held)}") or not step.reads
    for source in itertools.chain(*(term.sources for term in cell.terms)):
        assert source.symbol in step.reads, where
        assert same(source.value, float(trace[source.symbol][source.index])), (where, source)
    total = again(step.op, cell)
    assert same(cell.total, total) or cell.total == pytest.approx(total, rel=1e-14), where
    room = rounding(trace, step, cell)
    largest = torch.finfo(trace.dtype).max
    if math.isinf(held) and math.isfinite(total):
        assert abs(total) > largest * (1 - room), where  # too large for the type
        assert (total > 0) == (held > 0), where
    else:
        summed = step.op.kind in ("contract", "rotate")
        scale = math.fsum(abs(t.value) for t in cell.terms) if summed else 0
        scale = max(scale, abs(total))
        tiny = torch.finfo(trace.dtype).smallest_normal
        assert same(total, held) or abs(total - held) <= room * scale + tiny, (where, total, held)


def same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def rounding(trace, step, cell) -> float:
    """How far one computed element may be from its exact value, relative to what is added."""
    if step.op.kind in ("gather", "concat", "mask", "given"):
        return 0.0
    used = getattr(torch, getattr(step.op, "dtype", "") or "float64")  # softmax's own type
    eps = max(torch.finfo(kind).eps for kind in (trace[step.symbol].dtype, used))
    if step.op.kind != "softmax":
        return eps * (2 + len(cell.terms) / 8)
    row = [x for term in cell.terms for x in [term.sources[0].value] if math.isfinite(x)]
    return eps * (4 + (max(row, default=0) - min(row, default=0)))  # e^x feels the rounding of x


def again(op, cell) -> float:
    """The result of a cell from the numbers it read, worked out here once more."""
    read = [[source.value for source in term.sources] for term in cell.terms]
    if op.kind == "given":
        return cell.value
    if op.kind == "contract":
        if op.wide:  # an operand that grew too large counts as the largest number
            read = [[max(-op.wide, min(op.wide, x)) for x in pair] for pair in read]
        if all(math.isfinite(number) for pair in read for number in pair):
            return float(sum(Fraction(a) * Fraction(b) for a, b in read))
        return sum(a * b for a, b in read)
    if op.kind == "softmax":
        return shares(op, cell, [x for (x,) in read])
    if op.kind == "rotate" and len(read) == 2:
        (x, cos), (y, sin) = read
        first = cell.index[-1] < cell.terms[1].sources[0].index[-1]
        return x * cos - y * sin if first else x * cos + y * sin
    if op.kind == "rms":
        x, gain, *others = read[0]
        return x * gain / math.sqrt(sum(y * y for y in (x, *others)) / (1 + len(others)) + op.eps)
    x = read[0][0]
    if op.kind == "scale":
        return 0.0 if op.finite and math.isinf(x) else x * op.factor
    if op.kind == "softcap":
        return op.cap * math.tanh(x / op.cap)
    if op.kind == "bias":
        return -math.inf if op.hides and read[1][0] == -math.inf else x + read[1][0]
    if op.kind == "mask":
        return x if read[0][1] else -math.inf
    return x


def shares(op, cell, row) -> float:
    """Softmax of one row; where numbers grew too large, from the terms."""
    if not row:
        return 0.0
    top = max(row)
    if op.guard or op.dtype or math.isnan(sum(row)):
        exponentials = [term.value for term in cell.terms]
    else:
        exponentials = [math.exp(x - top) for x in row]
    return exponentials[cell.index[-1]] / math.fsum(exponentials)


def test_explain_counts_from_the_right_and_refuses_the_rest():
    t = core.run(core.AttentionConfig(B=1, S=2, H=4, h=2), device="cpu")
    assert t.explain("weights", (1, 0, 1)).index == (0, 1, 0, 1)
    assert t.explain("weights", (1, 0, 1)).value == float(t["weights"][0, 1, 0, 1])
    for index in [(0,), (1, 0, 0, 0), (0, 2, 0, 0), (0, 0, 0, -1), (0, 0, 0, 0, 0), ()]:
        with pytest.raises(core.InputError) as refused:
            t.explain("weights", index)
        assert refused.value.id == "no-cell"
    for index in ("ab", None, 3, [None], [[0]], [1.5, 0, 0]):
        with pytest.raises(core.InputError):
            t.explain("weights", index)


def test_explain_writes_the_arithmetic():
    t = core.run(core.AttentionConfig(x="example", d_k=3, causal=True), device="cpu")
    assert t.explain("X", (0, 4)).text == "0.89"
    x, w = t["X"][0], t["W_Q"][:, 1]
    terms = t.explain("Q", (0, 1)).terms
    assert [term.value for term in terms] == [
        float(a) * float(b) for a, b in zip(x, w, strict=True)
    ]
    assert terms[4].sources[0].index == (0, 4)
    assert terms[4].sources[1].index == (4, 1)
    assert t.explain("Q", (0, 1)).text.startswith("0.05·")
    assert t.explain("Q", (0, 1)).text.count("·") == 6
    assert t.explain("scaled", (0, 0)).text == (
        f"{write(t['scores'][0, 0])} / √3 = {write(t['scaled'][0, 0])}"
    )
    assert t.explain("masked", (0, 1)).text == "mask[0, 1] = False = −∞"
    assert t.explain("weights", (0, 0)).text.endswith("= 1")
    assert "e^−∞" not in t.explain("weights", (3, 0)).text


# --- to a file and back -----------------------------------------------------------------


def test_save_and_load(example, tmp_path):
    path = tmp_path / "trace.safetensors"
    example.save(path)
    loaded = core.Trace.load(path)
    assert list(loaded) == list(example)
    assert loaded.sizes == example.sizes
    assert loaded.dtype == example.dtype
    for old, new in zip(example.steps, loaded.steps, strict=True):
        assert bits(old.tensor, new.tensor), old.symbol
        assert (old.strides, old.shares) == (new.strides, new.shares), old.symbol
        assert (old.reads, old.dims, old.stage, old.text) == (
            new.reads,
            new.dims,
            new.stage,
            new.text,
        )
        assert type(old.op) is type(new.op)
        assert old.latex == new.latex
        assert old.op == new.op or isinstance(old.op, Given)
    assert [n.id for n in loaded.notices] == [n.id for n in example.notices]


def bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal in type, shape and value, NaN being equal to NaN."""
    alike = (a == b) | ((a != a) & (b != b))
    return a.dtype == b.dtype and a.shape == b.shape and bool(alike.all())


@pytest.fixture
def saved(tmp_path):
    """A file, and a way to write it again with its description changed."""
    path = tmp_path / "trace.safetensors"
    q = torch.randn(2, 4, 3, 2)
    core.attend(q, q[:, :2], q[:, :2], causal=True, softmax_dtype="float64").save(path)
    with safe_open(path, framework="pt") as file:
        about = json.loads(file.metadata()["qkv_trace"])
        kept = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118

    def change(edit=lambda about, kept: None):
        edit(about, kept)
        save_file(kept, path, metadata={"qkv_trace": json.dumps(about)})
        return path

    return change


def refused(path):
    with pytest.raises(core.InputError) as problem:
        core.Trace.load(path)
    assert problem.value.id == "file"
    assert str(path) in str(problem.value)


def test_files_that_are_none(saved, tmp_path):
    path = saved()
    assert core.Trace.load(path)["weights"].shape == (2, 4, 3, 3)
    whole = path.read_bytes()
    for length in [0, 1, 7, 8, 9, 100, len(whole) // 2, len(whole) - 1]:
        path.write_bytes(whole[:length])
        refused(path)
    path.write_bytes(b"\xff" * 4096)
    refused(path)
    path.write_bytes(struct.pack("<Q", 2**62) + b"{}")
    refused(path)
    refused(tmp_path)
    refused(tmp_path / "missing")
    save_file({"X": torch.zeros(2)}, path)
    refused(path)
    for text in ["", "nonsense", "null", "[]", "{}", "[" * 100_000, '{"steps": 3}']:
        save_file({"X": torch.zeros(2)}, path, metadata={"qkv_trace": text})
        refused(path)


def put(*place_and_value):
    """An edit that sets one value in the description of a trace."""
    *place, last, value = place_and_value

    def edit(about, kept):
        for name in place:
            about = about[name]
        about[last] = value

    return edit


def place(symbol, field):
    """Where a field of a step stands in the description of the `saved` trace."""
    order = ["Q", "K", "V", "K_repeat", "V_repeat", "scores", "scaled", "mask", "masked", "weights"]
    return "steps", order.index(symbol), field


CODE = "X; import os"
HOSTILE = {
    "unknown op": put(*place("scaled", 1), {"kind": "launch"}),
    "unknown parameter": put(*place("scaled", 1), {"kind": "scale", "power": 9}),
    "no kind": put(*place("scaled", 1), {}),
    "parameter of another type": put(*place("scaled", 1), {"kind": "scale", "factor": "1"}),
    "a scale that is no number": put(*place("scaled", 1), {"kind": "scale", "factor": math.nan}),
    "a cap of 0": put(*place("scaled", 1), {"kind": "softcap", "cap": 0}),
    "root of another type": put(*place("scaled", 1), {"kind": "scale", "root": 0.5}),
    "code as a type": put(*place("weights", 1), {"kind": "softmax", "dtype": CODE}),
    "code as a guard": put(*place("weights", 1), {"kind": "softmax", "guard": CODE}),
    "code as a symbol": put(*place("Q", 0), CODE),
    "a keyword as a symbol": put(*place("Q", 0), "import"),
    "code in dims": put(*place("V_repeat", 3), "B h T d_v);X"),
    "code as a text": put(*place("Q", 5), "../../secret"),
    "code as a size": put("sizes", "B", CODE),
    "code as the name of a size": put("sizes", CODE, 3),
    "unknown stage": put(*place("Q", 4), "lunch"),
    "unknown dim": put(*place("scores", 3), "B h S Z"),
    "dims of the same sizes, otherwise named": put(*place("K", 3), "B d_v T d_k"),
    "dims of another shape": put(*place("scores", 3), "B h T d_k"),
    "size that disagrees": put("sizes", "S", 5),
    "size below 0": put("sizes", "S", -3),
    "reads what comes later": put(*place("K_repeat", 2), ["weights"]),
    "reads itself": put(*place("K_repeat", 2), ["K_repeat"]),
    "reads too few": put(*place("scores", 2), ["Q"]),
    "reads too many": put(*place("scaled", 2), ["scores", "scores"]),
    "a symbol twice": put(*place("K_repeat", 0), "V_repeat"),
    "a step twice": lambda about, kept: about["steps"].insert(6, about["steps"][6]),
    "repeats without end": put(*place("K_repeat", 1), {"kind": "repeat", "times": 2**40}),
    "splits by 0": put(*place("K_repeat", 1), {"kind": "split", "heads": 0}),
    "strides of another rank": put("strides", "Q", [1]),
    "strides below 0": put("strides", "Q", [-1, 1, 1, 1]),
    "strides past all memory": put("strides", "Q", [2**40, 1, 1, 1]),
    "strides past what a few numbers need": put("strides", "Q", [2**24, 1, 1, 1]),
    "strides of no tensor": put("strides", "Z", [1]),
    "type that is none": put("dtype", "nn"),
    "a short step": put("steps", 0, ["Q"]),
    "no steps": put("steps", []),
    "steps of another kind": put("steps", None),
    "a tensor of no step": lambda about, kept: kept.update(Z=torch.zeros(2)),
    "an input is missing": lambda about, kept: kept.pop("Q"),
    "a product is missing": lambda about, kept: kept.pop("scores"),
    "weights are missing": lambda about, kept: kept.pop("weights"),
    "weights of another shape": lambda about, kept: kept.update(weights=torch.zeros(2, 4, 3, 2)),
    "weights of another type": lambda about, kept: kept.update(
        weights=torch.zeros(2, 4, 3, 3).int()
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(name, saved):
    refused(saved(HOSTILE[name]))


def test_code_in_a_file_is_not_repeated(saved):
    evil = {"kind": "given", "lines": "__import__('os').system('true')"}
    loaded = core.Trace.load(saved(put(*place("Q", 1), evil)))
    assert "system" not in loaded.source()


# --- large traces -----------------------------------------------------------------------


def test_slabs_change_no_bit(example, remake, monkeypatch):
    """Scores worked on in slabs, their scaled and masked forms made on demand: the same bits."""
    monkeypatch.setattr(traces, "STORED", 0)
    monkeypatch.setattr(traces, "SLAB", 7)
    lean = remake()
    local = [s.symbol for s in example.steps if s.op.local and "prescaled" not in s.symbol]
    for old, new in zip(example.steps, lean.steps, strict=True):
        assert bits(old.tensor, new.tensor), old.symbol
        assert old.op == new.op, old.symbol
        assert (new.symbol in lean.stored) == (new.symbol not in local)
    place = tuple(n - 1 for n in lean.shape("weights"))
    for symbol in local:
        assert same(lean.explain(symbol, place).value, example.explain(symbol, place).value)
        lead = place[:1]
        assert bits(lean.rows(symbol, lead), example[symbol][lead])
    assert lean.notices == example.notices or [n.facts for n in lean.notices] == [
        n.facts for n in example.notices
    ]


def test_a_large_trace_keeps_scores_and_weights_alone():
    q = torch.randn(1, 2, 800, 4)
    t = core.attend(q, q, q, causal=True)
    assert "scores" in t.stored
    assert "weights" in t.stored
    assert "scaled" not in t.stored
    assert "masked" not in t.stored
    eager = (q @ q.transpose(-2, -1) / 2).masked_fill(~t["mask"], -math.inf)
    assert torch.equal(t["masked"], eager)
    assert torch.equal(t["weights"], eager.softmax(-1))
    assert t.explain("masked", (0, 1, 799, 3)).value == float(eager[0, 1, 799, 3])
