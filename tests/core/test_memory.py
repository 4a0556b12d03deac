"""Strides and storages: what the page says is what torch reports, for any shape and chain."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.memory import Break, Conflict, view_conflict, walk
from core.memory_chain import (
    FORMS,
    ChainError,
    Operation,
    read_chain,
    read_shape,
    write_chain,
    write_shape,
)
from core.memory_presets import PRESETS, names


def run(shape, text):
    return walk(shape, read_chain(text))


def replay(shape, chain):
    """The same tensors by plain torch calls, written apart from the code under test."""
    calls = {
        "view": lambda x, *n: x.view(*n),
        "reshape": lambda x, *n: x.reshape(*n),
        "permute": lambda x, *n: x.permute(*n),
        "expand": lambda x, *n: x.expand(*n),
        "flip": lambda x, *n: x.flip(*n),
        "slice": lambda x, d, a, b, c: x.movedim(d, 0)[a:b:c].movedim(0, d),
        "repeat_interleave": lambda x, r, d: torch.repeat_interleave(x, r, dim=d),
        "matmul": lambda x, n: torch.matmul(
            x, (torch.arange(x.shape[-1] * n) % 5 - 2.0).view(x.shape[-1], n)
        ),
    }
    tensors = [torch.arange(float(torch.Size(shape).numel())).reshape(shape)]
    for name, numbers in chain:
        call = calls.get(name) or (lambda x, *n, name=name: getattr(x, name)(*n))
        tensors.append(call(tensors[-1], *numbers))
    return tensors


@st.composite
def operations(draw, shape):
    """An operation that mostly fits `shape`."""
    dim = st.integers(-len(shape), len(shape) - 1) if shape else st.just(0)
    name = draw(st.sampled_from(sorted(FORMS)))
    size = st.integers(1, 4)
    numbers = {
        "view": lambda: draw(factors(shape)),
        "reshape": lambda: draw(factors(shape)),
        "transpose": lambda: (draw(dim), draw(dim)),
        "permute": lambda: draw(st.permutations(range(len(shape) or 1))),
        "expand": lambda: (
            [draw(st.sampled_from((-1, n))) if n > 1 else draw(size) for n in shape] or [draw(size)]
        ),
        "narrow": lambda: (draw(dim), draw(st.integers(0, 2)), draw(size)),
        "slice": lambda: (draw(dim) % (len(shape) or 1), draw(st.integers(-3, 2)), 9, draw(size)),
        "flip": lambda: (draw(dim),),
        "contiguous": lambda: (),
        "squeeze": lambda: draw(st.sampled_from(((), (draw(dim),)))),
        "unsqueeze": lambda: (draw(st.integers(-len(shape) - 1, len(shape))),),
        "t": lambda: (),
        "repeat_interleave": lambda: (draw(size), draw(dim)),
        "matmul": lambda: (draw(size),),
    }[name]()
    return Operation(name, tuple(numbers))


@st.composite
def factors(draw, shape):
    """The elements of `shape` split anew, by moving prime factors about."""
    sizes = [1] * draw(st.integers(1, 4))
    rest = torch.Size(shape).numel()
    for prime in (2, 3, 5, 7):
        while rest % prime == 0:
            rest //= prime
            sizes[draw(st.integers(0, len(sizes) - 1))] *= prime
    sizes[0] *= rest
    return sizes


@st.composite
def walks(draw):
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=5)))
    if torch.Size(shape).numel() > 300:
        shape = shape[:3]
    chain = ()
    for _ in range(draw(st.integers(0, 7))):
        chain += (draw(operations(walk(shape, chain).stages[-1].shape)),)
        if walk(shape, chain).failure:
            break
    return walk(shape, chain)


@settings(max_examples=200, deadline=None)
@given(walks())
def test_every_fact_is_the_one_torch_reports(found):
    tensors = replay(found.shape, found.chain[: len(found.stages) - 1])
    for stage, tensor, before in zip(found.stages, tensors, [None, *tensors], strict=False):
        assert stage.shape == tuple(tensor.shape)
        assert stage.strides == tensor.stride()
        assert stage.offset == tensor.storage_offset()
        assert stage.contiguous == tensor.is_contiguous() == (not stage.breaks)
        assert stage.start_bytes == tensor.data_ptr() - tensor.untyped_storage().data_ptr()
        assert stage.view_bytes == tensor.nbytes
        assert stage.storage_bytes == tensor.untyped_storage().nbytes()
        shares = before is not None and (
            tensor.untyped_storage().data_ptr() == before.untyped_storage().data_ptr()
        )
        assert stage.shares == shares


@settings(max_examples=100, deadline=None)
@given(walks())
def test_the_strip_address_of_every_element_is_the_one_torch_reports(found):
    stage = found.stages[-1]
    tensor = replay(found.shape, found.chain[: len(found.stages) - 1])[-1]
    seen = set()
    for index in itertools.product(*map(range, stage.shape)):
        address = stage.address(index)
        assert address == tensor[index].storage_offset()
        assert found.storages[stage.storage][address] == tensor[index].item()
        assert stage.explain(index).endswith(f"= {address}")
        seen.add(address)
    assert stage.touched == len(seen)


@settings(max_examples=100, deadline=None)
@given(walks())
def test_the_snippet_builds_the_same_tensor(found):
    scope = {}
    exec(found.snippet().rpartition("print")[0], scope)
    stage, tensor = found.stages[-1], scope["x"]
    facts = (tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
    assert facts == (stage.shape, stage.strides, stage.offset)
    assert torch.equal(
        tensor,
        torch.from_numpy(found.storages[stage.storage].copy()).as_strided(
            stage.shape, stage.strides, stage.offset
        ),
    )


@settings(max_examples=100, deadline=None)
@given(walks())
def test_a_chain_reads_back_as_it_was_written(found):
    assert read_chain(write_chain(found.chain)) == found.chain
    assert read_shape(write_shape(found.shape)) == found.shape


@settings(max_examples=200, deadline=None)
@given(walks(), st.data())
def test_a_conflict_is_named_exactly_where_torch_refuses_a_view(found, data):
    stage = found.stages[-1]
    view = Operation("view", tuple(data.draw(factors(stage.shape))))
    tensor = replay(found.shape, found.chain[: len(found.stages) - 1])[-1]
    try:
        tensor.view(view.numbers)
    except RuntimeError:
        conflict = view_conflict(tensor, view)
        assert conflict.stride == tensor.stride(conflict.outer) != conflict.expected
        assert conflict.inner_stride == tensor.stride(conflict.inner)
        assert conflict.inner_size == tensor.shape[conflict.inner]
        assert view.numbers[conflict.target] == conflict.size > 1
    else:
        assert view_conflict(tensor, view) is None


def test_the_example_of_four_dims():
    first, second, third = run((1, 4, 2, 3), "transpose(1,2).contiguous()").stages
    assert first.strides == (24, 6, 3, 1)
    assert (second.shape, second.strides, second.shares) == ((1, 2, 4, 3), (24, 3, 6, 1), True)
    assert second.breaks[0] == Break(dim=2, stride=6, inner=3, inner_stride=1, inner_size=3)
    assert second.breaks[0].expected == 3
    assert (third.strides, third.contiguous, third.shares) == ((24, 12, 3, 1), True, False)
    assert second.explain((0, 1, 3, 2)) == "0·24 + 1·3 + 3·6 + 2·1 = 23"


def test_a_refused_view_tells_torchs_words_the_stride_and_the_price_of_each_cure():
    found = run((1, 4, 2, 3), "transpose(1,2).view(1,2,12)")
    failure = found.failure
    assert len(found.stages) == 2
    assert failure.at == 1
    assert failure.message.startswith("RuntimeError: view size is not compatible")
    assert failure.error is None
    assert failure.conflict == Conflict(2, 6, 3, 1, 3, target=2, size=12)
    assert [write_chain(cure.operations) for cure in failure.cures] == [
        "reshape(1,2,12)",
        "contiguous().view(1,2,12)",
    ]
    for cure in failure.cures:
        assert (cure.shape, cure.strides) == ((1, 2, 12), (24, 12, 1))
        assert (cure.copied_elements, cure.copied_bytes) == (24, 96)
    assert "# x = x.view(1, 2, 12)  # RuntimeError" in found.snippet()


def test_sizes_of_one_are_exempt():
    swapped = run((4, 1, 6), "transpose(0,1).view(24)").stages[1]
    assert (swapped.shape, swapped.strides) == ((1, 4, 6), (6, 6, 1))
    assert swapped.strides[0] != swapped.strides[1] * swapped.shape[1]
    assert swapped.contiguous
    assert swapped.breaks == ()


def test_expand_reads_a_cell_many_times_and_slice_starts_late():
    expanded = run((3, 1), "expand(3,4)").stages[-1]
    assert (expanded.strides, expanded.elements, expanded.touched) == ((1, 0), 12, 3)
    assert (expanded.view_bytes, expanded.storage_bytes) == (48, 12)
    sliced = run((4, 6), "slice(1,1,6,2)").stages[-1]
    assert (sliced.shape, sliced.strides, sliced.offset) == ((4, 3), (6, 2), 1)
    assert sliced.start_bytes == 4
    assert sliced.explain((0, 2)) == "1 + 0·6 + 2·2 = 5"


def test_flip_and_reshape_after_transpose_copy_and_contiguous_of_contiguous_does_not():
    assert not run((3, 4), "flip(1)").stages[-1].shares
    assert not run((3, 4), "t().reshape(12)").stages[-1].shares
    assert run((3, 4), "reshape(12)").stages[-1].shares
    assert run((3, 4), "contiguous()").stages[-1].shares


def test_a_storage_that_comes_back_is_the_same_one():
    stages = run((3, 4), "t().t()").stages
    assert [stage.storage for stage in stages] == [0, 0, 0]
    stages = run((3, 4), "flip(1).flip(1)").stages
    assert [stage.storage for stage in stages] == [0, 1, 2]


@pytest.mark.parametrize(
    ("shape", "text", "id", "facts"),
    [
        ((2, 3), "view(5)", "elements", {"count": 5, "have": 6}),
        ((2, 3), "view(-1,-1)", "infer-two", {}),
        ((2, 3), "view(-1,4)", "infer", {"known": 4, "have": 6}),
        ((2, 3), "reshape(0,6)", "least", {"got": 0}),
        ((2, 3), "transpose(0,2)", "dim-range", {"dim": 2, "dims": 2}),
        ((2, 3), "permute(0,0)", "permute", {"dims": 2}),
        ((2, 3), "expand(2,4)", "expand-size", {"dim": 1, "have": 3, "wanted": 4}),
        ((2, 3), "expand(3)", "expand-fewer", {"dims": 2}),
        ((2, 3), "narrow(1,2,2)", "narrow", {"size": 3, "start": 2, "length": 2}),
        ((2, 3), "slice(1,3,9,1)", "slice-empty", {"size": 3}),
        ((2, 3), "slice(1,0,3,0)", "least", {"what": "step"}),
        ((2, 3), "slice(-1,0,3,1)", "slice-dim", {"instead": 1}),
        ((2, 3), "flip(0,0)", "dim-twice", {}),
        ((2, 3, 4), "t()", "t-dims", {"dims": 3}),
        ((1, 1, 1, 1, 1), "unsqueeze(0)", "dims-most", {"most": 5}),
        ((2, 3), "repeat_interleave(0,1)", "least", {"what": "repeats"}),
        ((64, 64), "repeat_interleave(2,1)", "too-many", {"count": 8192}),
        ((1, 1), "expand(9999,9999)", "too-many", {"count": 99_980_001}),
        ((1, 4096), "matmul(4096)", "weights-most", {"rows": 4096}),
        ((2, 3), "squeeze(5)", "dim-range", {"dim": 5}),
    ],
)
def test_what_cannot_be_done_names_the_sizes(shape, text, id, facts):
    found = run(shape, text)
    assert len(found.stages) == 1
    assert found.failure.error.id == id
    assert facts.items() <= found.failure.error.facts.items()


@settings(max_examples=200, deadline=None)
@given(walks())
def test_only_what_torch_refuses_is_refused(found):
    """Apart from our own limits, and from results without any element, which cannot be drawn."""
    failure = found.failure
    if failure is None or failure.error is None:
        return
    tensor = replay(found.shape, found.chain[: failure.at])[-1]
    try:
        result = replay(found.shape, found.chain[: failure.at + 1])[-1]
    except (RuntimeError, IndexError, ValueError):
        assert failure.message
    else:
        limits = ("too-many", "dims-most", "weights-most", "slice-dim")
        assert failure.error.id in limits or result.numel() == 0 or tensor.ndim == 0


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("", "shape-text"),
        ("a,b", "shape-text"),
        ("2,-3", "shape-text"),
        ("1,1,1,1,1,1", "shape-dims"),
        ("2,0", "shape-size"),
        ("99999999999999999999", "shape-size"),
        ("64,65", "too-many"),
    ],
)
def test_a_shape_that_cannot_be(text, id):
    with pytest.raises(ChainError) as caught:
        read_shape(text)
    assert caught.value.id == id


@pytest.mark.parametrize(
    "text", ["1,4,2,3", " (1, 4, 2, 3) ", "[1,4,2,3]", "1x4x2x3", "1，4，2，3"]
)
def test_a_shape_may_be_written_in_several_ways(text):
    assert read_shape(text) == (1, 4, 2, 3)


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("__import__('os')", "chain-text"),
        ("view(2,3", "chain-text"),
        ("view(2.5)", "chain-text"),
        ("t()t()", "chain-text"),
        ("t()xt()", "chain-text"),
        ("t().", "chain-text"),
        ("t()..t()", "chain-text"),
        ("explode(1)", "name"),
        ("transpose(1)", "numbers"),
        ("contiguous(1)", "numbers"),
        (".".join(["t()"] * 25), "chain-long"),
    ],
)
def test_a_chain_that_cannot_be_read(text, id):
    with pytest.raises(ChainError) as caught:
        read_chain(text)
    assert caught.value.id == id


def test_matmul_takes_any_strides():
    swapped, product = run((2, 3), "t().matmul(4)").stages[1:]
    assert not swapped.contiguous
    assert product.shape == (3, 4)


def test_presets_run_to_their_end_but_for_the_one_that_is_refused():
    for name, preset in PRESETS.items():
        found = walk(preset.shape, preset.chain)
        assert (found.failure is not None) == (name == "refused"), name


def test_the_names_of_the_attention_preset_fit_its_sizes():
    preset = PRESETS["attention"]
    sizes = {"B": 1, "S": 3, "H": 6, "g": 2, "r": 2, "h": 4, "d_k": 4, "1": 1}
    stages = walk(preset.shape, preset.chain).stages
    assert len(stages) == len(preset.dims) == len(preset.symbols)
    for place, stage in enumerate(stages):
        dims, symbol = names(preset.shape, preset.chain, place)
        assert symbol == preset.symbols[place]
        expected = [torch.Size(sizes[part] for part in dim.split("*")).numel() for dim in dims]
        assert stage.shape == tuple(expected)
    assert [place for place, stage in enumerate(stages) if place and not stage.shares] == [1, 8, 10]
    assert stages[7].strides == (24, 4, 0, 8, 1)
