"""The script a trace writes: run elsewhere, it makes every tensor again, bit for bit."""

import ast
import subprocess
import sys

import pytest
import torch

import core

# Runs scripts one after the other, each in a namespace of its own, and keeps what they made.
RUNNER = """
import sys, torch
for path in sys.argv[1:]:
    names = {}
    exec(open(path).read(), names)
    made = {name: x for name, x in names.items() if isinstance(x, torch.Tensor)}
    torch.save(made, path + ".made")
assert "core" not in sys.modules
"""


def run_elsewhere(folder, *scripts):
    command = [sys.executable, "-c", RUNNER, *map(str, scripts)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [torch.load(f"{script}.made") for script in scripts]


def check(trace, made):
    for step in trace.steps:
        wanted, found = step.tensor, made[step.symbol]
        assert found.dtype == wanted.dtype, step.symbol
        assert found.shape == wanted.shape, step.symbol
        assert torch.equal(as_bits(found), as_bits(wanted)), step.symbol
        assert found.stride() == step.strides, step.symbol


def as_bits(x):
    """Numbers as the integers that their bits spell: −0 is not 0, and NaN is equal to itself."""
    if x.dtype == torch.bool:
        return x
    kinds = {2: torch.int16, 4: torch.int32, 8: torch.int64}
    return x.contiguous().view(kinds[x.element_size()])


@pytest.fixture(scope="module")
def folder(examples, tmp_path_factory):
    """Every example's file and script, and what one process made of all scripts."""
    folder = tmp_path_factory.mktemp("source")
    scripts = []
    for number, trace in enumerate(examples.values()):
        trace.save(folder / f"{number}.safetensors")
        scripts.append(folder / f"{number}.py")
        scripts[-1].write_text(trace.source())
    made = run_elsewhere(folder, *scripts)
    return dict(zip(examples, made, strict=True))


def test_every_script_rebuilds_its_trace(folder, examples):
    for name, trace in examples.items():
        try:
            check(trace, folder[name])
        except AssertionError as wrong:
            raise AssertionError(f"{name}: {wrong}") from wrong


@pytest.mark.parametrize("name", ["heads", "odd layouts", "half, overflowing", "sentences"])
def test_a_script_in_a_process_of_its_own(name, examples, tmp_path):
    trace, script = examples[name], tmp_path / "script.py"
    trace.save(tmp_path / "t.safetensors")
    script.write_text(trace.source())
    check(trace, run_elsewhere(tmp_path, script)[0])


def test_larger_seeded_traces(tmp_path):
    """Sizes at which matrix products are cut into blocks, and the softmax runs in slabs."""
    traces = [
        core.run(core.AttentionConfig(S=300, H=96, h=12, causal=True, project=True), device="cpu"),
        core.run(core.AttentionConfig(S=65, T=33, H=70, h=5, g=1, cross=True, B=3, dtype="float16",
                                      lengths=(0, 7, 33)), device="cpu"),
        core.run(core.AttentionConfig(S=257, H=64, h=2, dtype="bfloat16", softcap=5.0, B=2,
                                      softmax_dtype="float32", window=(9, 9)), device="cpu"),
    ]  # fmt: skip
    assert "masked" not in traces[0].stored
    scripts = [tmp_path / f"{number}.py" for number in range(len(traces))]
    for trace, script in zip(traces, scripts, strict=True):
        assert "load_file" not in trace.source()
        script.write_text(trace.source())
    for trace, made in zip(traces, run_elsewhere(tmp_path, *scripts), strict=True):
        check(trace, made)


def test_a_seeded_script_needs_no_file(examples):
    seeded = {"opening example", "heads", "cross, grouped", "cross, one query", "sentences",
              "one of everything", "float64", "bfloat16", "float16", "rotary"}  # fmt: skip
    assert {name for name, t in examples.items() if "load_file(" not in t.source()} == seeded


def test_a_script_is_plain_lines(example):
    """One assignment or more per step, in order, with its shape; nothing else is imported."""
    tree = ast.parse(example.source())
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    allowed = {"import torch", "from safetensors.torch import load_file"}
    assert set(map(ast.unparse, imported)) <= allowed
    targets = [node.targets[0] for node in tree.body if isinstance(node, ast.Assign)]
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    made = [name for name in dict.fromkeys(names) if name in example]
    assert made == list(example)


def test_inputs_at_odd_addresses(tmp_path):
    """Inputs cut out of larger tensors: some kernels round otherwise at odd addresses."""
    q, k, v = (torch.randn(61)[n : n + 40].view(10, 4) for n in (1, 2, 3))
    assert q.data_ptr() % 16
    trace, script = core.attend(q[:3], k[1::2], v[1::2]), tmp_path / "script.py"
    assert trace.steps[1].strides == (8, 1)
    trace.save(tmp_path / "t.safetensors")
    script.write_text(trace.source())
    check(trace, run_elsewhere(tmp_path, script)[0])


def test_a_file_puts_tensors_at_odd_addresses(tmp_path):
    """In a file, tensors follow one another without gaps: behind 100 bytes the next is odd."""
    generator = torch.Generator().manual_seed(0)
    traces, scripts = [], []
    for number, (S, T) in enumerate([(2, 5), (5, 5), (2, 7), (5, 7)]):
        q, k, v = (torch.randn(n, 5, generator=generator) for n in (S, T, T))
        traces.append(core.attend(q, k, v))
        traces[-1].save(tmp_path / f"{number}.safetensors")
        scripts.append(tmp_path / f"{number}.py")
        scripts[-1].write_text(traces[-1].source())
    for trace, made in zip(traces, run_elsewhere(tmp_path, *scripts), strict=True):
        check(trace, made)


def test_the_file_a_script_reads(tmp_path):
    trace = core.attend(*(torch.randn(3, 4) for _ in range(3)))
    assert "load_file('trace.safetensors')" in trace.source()
    assert "load_file('else.safetensors')" in trace.source("else.safetensors")
    path = tmp_path / "it's.safetensors"
    trace.save(path)
    assert f"load_file({str(path)!r})" in trace.source()
    loaded = core.Trace.load(path)
    assert loaded.source() == trace.source()
    script = tmp_path / "script.py"
    script.write_text(loaded.source())
    check(trace, run_elsewhere(tmp_path, script)[0])


def test_a_loaded_seeded_trace_reads_its_file(tmp_path):
    trace = core.run(core.AttentionConfig(h=2, causal=True), device="cpu")
    trace.save(tmp_path / "t.safetensors")
    loaded, script = core.Trace.load(tmp_path / "t.safetensors"), tmp_path / "script.py"
    script.write_text(loaded.source())
    check(trace, run_elsewhere(tmp_path, script)[0])
