"""What must hold for any sizes, numbers and masks: Hypothesis looks for a counterexample."""

import copy
import json
import math
import warnings

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import save_file

import core
from core import AttentionConfig, InputError, ops

small = st.integers(1, 4)
settings.register_profile(
    "core", max_examples=40, deadline=None, suppress_health_check=list(HealthCheck)
)
settings.load_profile("core")


def draw(seed, *shape, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


@st.composite
def problems(draw_from, dtype=torch.float64):
    """q, k, v and keywords for `attend`, in any combination that fits."""
    pick = draw_from
    B, g, r, S, T, P = (pick(small) for _ in range(6))
    d_k, d_v, seed = pick(small), pick(small), pick(st.integers(0, 2**20))
    q, k, v = (draw(seed + n, B, *shape, dtype=dtype) * pick(st.sampled_from([0.1, 1, 9]))
               for n, shape in enumerate(((g * r, S, d_k), (g, T, d_k), (g, T, d_v))))  # fmt: skip
    about = {}
    if pick(st.booleans()):
        about["past_key"], about["past_value"] = (draw(seed + n, B, g, P, d, dtype=dtype)
                                                  for n, d in ((3, d_k), (4, d_v)))  # fmt: skip
        T += P
    shape = [pick(st.sampled_from([1, n])) for n in (B, g * r, S)] + [T]
    shape = shape[pick(st.sampled_from([0, 2])) :]
    kind = pick(st.sampled_from(["none", "bool", "float", "both"]))
    if kind == "bool":
        about["mask"] = draw(seed + 5, *shape) > pick(st.sampled_from([-9.0, -0.5, 0.5]))
    elif kind in ("float", "both"):
        about["mask"] = draw(seed + 6, *shape, dtype=dtype)
        if kind == "both":
            about["mask"] = about["mask"].masked_fill(draw(seed + 7, *shape) > 0.5, -math.inf)
    about["causal"] = pick(st.sampled_from([False, True, "bottom-right"]))
    about["window"] = pick(st.sampled_from([None, (0, 0), (1, -1), (-1, 2), (2, 1)]))
    about["scale"] = pick(st.sampled_from([None, 0.0, 0.3, -1.0, 4.0]))
    about["softcap"] = pick(st.sampled_from([None, 0.5, 30.0]))
    about["softmax_dtype"] = pick(st.sampled_from([None, "float32", "float16"]))
    return q, k, v, about


def wanted(q, k, v, about):
    """Attention written out once more, cell by cell where the engine works on whole tensors."""
    k, v = (
        x if about.get(f"past_{name}") is None else torch.cat((about[f"past_{name}"], x), -2)
        for x, name in ((k, "key"), (v, "value"))
    )
    S, T, r = q.shape[2], k.shape[2], q.shape[1] // k.shape[1]
    past = about["past_key"].shape[2] if "past_key" in about else 0
    offset = T - S if about["causal"] == "bottom-right" else past
    factor = about["scale"] if about["scale"] is not None else 1 / math.sqrt(q.shape[3])
    x = torch.einsum("bhsd,bhtd->bhst", q, k.repeat_interleave(r, 1)) * factor
    if about["softcap"]:
        x = about["softcap"] * torch.tanh(x / about["softcap"])
    mask = about.get("mask")
    if mask is not None:
        x = torch.where(mask, x, -math.inf) if mask.dtype == torch.bool else x + mask
    left, right = about["window"] or (-1, -1)
    i, j = torch.arange(S)[:, None] + offset, torch.arange(T)[None]
    hidden = (j > i) if about["causal"] else torch.zeros(S, T, dtype=torch.bool)
    hidden = hidden | ((j < i - left) & (left >= 0)) | ((j > i + right) & (right >= 0))
    x = x.masked_fill(hidden, -math.inf)
    kind = getattr(torch, about["softmax_dtype"] or "float64")
    weights = x.to(kind).softmax(-1).nan_to_num(0.0).to(q.dtype)
    return weights, torch.einsum("bhst,bhtd->bhsd", weights, v.repeat_interleave(r, 1))


def ask(problem, **more):
    q, k, v, about = problem
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return core.attend(q, k, v, **(about | more))


@given(problems())
def test_attend_is_attention(problem):
    trace, (weights, output) = ask(problem), wanted(*problem)
    coarse = problem[3]["softmax_dtype"] is not None
    room = {"rtol": 2e-3, "atol": 2e-3} if coarse else {"rtol": 1e-9, "atol": 1e-9}
    torch.testing.assert_close(trace["weights"], weights, **room)
    torch.testing.assert_close(trace["output"], output, **room)


@given(problems())
def test_rows_sum_to_one_or_zero(problem):
    weights = ask(problem)["weights"]
    sums = weights.sum(-1)
    room = 5e-3 if problem[3]["softmax_dtype"] == "float16" else 1e-5
    assert bool(((sums - 1).abs() < room).logical_or(sums == 0).all())
    assert bool((weights >= 0).all())


@given(problems(), st.data())
def test_explain_adds_up(problem, data):
    trace = ask(problem)
    step = data.draw(st.sampled_from(trace.steps))
    index = tuple(data.draw(st.integers(0, n - 1)) for n in step.shape)
    cell, held = trace.explain(step.symbol, index), float(step.tensor[index])
    assert cell.value == held
    for term in cell.terms:
        for source in term.sources:
            assert source.value == float(trace[source.symbol][source.index])
    size = math.fsum(abs(term.value) for term in cell.terms if math.isfinite(term.value))
    coarse = step.symbol == "weights" and problem[3]["softmax_dtype"]
    room = {None: 1e-12, False: 1e-12, "float32": 1e-5, "float16": 2e-2}[coarse]
    assert cell.total == held or abs(cell.total - held) <= room * (1 + size)
    summed = math.fsum(term.value for term in cell.terms if not math.isinf(term.value))
    if step.op.kind in ("contract", "gather", "concat", "scale", "softcap", "bias", "mask"):
        hidden = any(math.isinf(term.value) for term in cell.terms)
        assert hidden or cell.total == pytest.approx(summed, rel=1e-12, abs=1e-300)
    elif step.op.kind == "softmax" and cell.terms:
        assert cell.total == cell.terms[index[-1]].value / summed


@given(problems(), st.randoms())
def test_permuting_keys_changes_nothing(problem, random):
    """Where no rule speaks of positions, keys are a set; permuted queries permute the output."""
    q, k, v, about = problem
    about = {name: about[name] for name in ("scale", "softcap")}
    keys, queries = list(range(k.shape[2])), list(range(q.shape[2]))
    random.shuffle(keys)
    random.shuffle(queries)
    before = core.attend(q, k, v, **about)
    after = core.attend(q, k[:, :, keys], v[:, :, keys], **about)
    torch.testing.assert_close(after["output"], before["output"])
    torch.testing.assert_close(after["weights"], before["weights"][..., keys])
    moved = core.attend(q[:, :, queries], k, v, **about)
    torch.testing.assert_close(moved["output"], before["output"][:, :, queries])


@given(st.integers(2, 6), st.integers(1, 3), st.randoms(), st.integers(0, 99))
def test_permuting_tokens_permutes_the_output(S, h, random, seed):
    X, W = draw(seed, S, 6), [draw(seed + n, 6, 6 * h) for n in (1, 2, 3)]
    seen = draw(seed + 4, S, S) > -0.5
    order = list(range(S))
    random.shuffle(order)
    before = core.self_attention(X, *W, heads=h, mask=seen)
    after = core.self_attention(X[order], *W, heads=h, mask=seen[order][:, order])
    last = before.steps[-1].symbol
    torch.testing.assert_close(after[last], before[last][order])


@given(problems(), st.floats(-50, 50))
def test_a_shift_of_the_scores_changes_nothing(problem, shift):
    q, k, v, about = problem
    about = about | {"softmax_dtype": None, "softcap": None}
    added = about.get("mask")
    if added is not None and added.dtype == torch.bool:
        added = torch.zeros(added.shape).double().masked_fill(~added, -math.inf)
    T = k.shape[2] + (about["past_key"].shape[2] if "past_key" in about else 0)
    added = torch.zeros(1, T).double() if added is None else added
    plain, shifted = (ask((q, k, v, about | {"mask": added + by})) for by in (0.0, shift))
    torch.testing.assert_close(shifted["weights"], plain["weights"], rtol=1e-9, atol=1e-12)


@given(st.integers(1, 3), small, small, small, st.booleans())
def test_split_then_merge_is_the_identity(B, S, heads, width, batch):
    X = torch.arange(float(B * S * heads * width)).view(B, S, heads * width)
    X = X if batch else X[0]
    apart = ops.Swap().compute(ops.Split(heads).compute(X))
    assert apart.shape[-3:] == (heads, S, width)
    assert torch.equal(ops.Merge().compute(ops.Swap().compute(apart)), X)
    for h in range(heads):
        assert torch.equal(apart[..., h, :, :], X[..., h * width : (h + 1) * width])


@given(problems(dtype=torch.float32), st.integers(0, 6))
def test_saved_traces_come_back(tmp_path_factory, problem, order):
    q, k, v, about = problem
    axes = [(0, 1, 2, 3), (0, 1, 3, 2), (1, 0, 2, 3), (3, 2, 1, 0), (2, 3, 0, 1), (0, 2, 1, 3)]
    axes = axes[order % 6]
    back = [axes.index(n) for n in range(4)]
    q = q.permute(axes).contiguous().permute(back)  # the same numbers in another layout
    trace = ask((q, k, v, about))
    path = tmp_path_factory.mktemp("saved") / "t.safetensors"
    trace.save(path)
    loaded = core.Trace.load(path)
    for old, new in zip(trace.steps, loaded.steps, strict=True):
        assert torch.equal(old.tensor, new.tensor)
        assert old.strides == new.strides
        assert old.op == new.op or isinstance(old.op, ops.Given)  # no code comes from a file


# --- numbers at the edges -----------------------------------------------------------------------

EDGES = [0.0, -0.0, 1.0, -2.0, 1e-45, 1e-20, 1e19, -1e19, 1e20, -1e20, 3.4e38, -3.4e38]


@given(st.data())
def test_no_nan_comes_of_finite_numbers(data):
    """Any finite float32 numbers, any masks, any scale: no NaN, and weights are weights."""
    number = st.sampled_from(EDGES)
    S, T, d = (data.draw(st.integers(1, 3)) for _ in range(3))
    rows = [data.draw(st.lists(number, min_size=n * d, max_size=n * d)) for n in (S, T, T)]
    q, k, v = (torch.tensor(row).view(-1, d) for row in rows)
    added = st.lists(st.sampled_from([0.5, -math.inf, 3e38, -3e38]), min_size=T, max_size=T)
    mask = data.draw(st.sampled_from(["none", "bool", "float"]))
    if mask == "bool":
        mask = torch.tensor([data.draw(st.lists(st.booleans(), min_size=T, max_size=T))])
    else:
        mask = None if mask == "none" else torch.tensor([data.draw(added)])
    trace = core.attend(
        q, k, v, mask=mask, causal=data.draw(st.sampled_from([False, True, "bottom-right"])),
        scale=data.draw(st.sampled_from([None, 0.0, 1.0, -1.0, 1e30, 1e-30, 3e38])),
        softcap=data.draw(st.sampled_from([None, 1e-30, 1.0, 3e38])),
        softmax_dtype=data.draw(st.sampled_from([None, "float16", "bfloat16", "float64"])),
    )  # fmt: skip
    for step in trace.steps:
        assert not bool(step.tensor.isnan().any()), step.symbol
    assert bool(((trace["weights"] >= 0) & (trace["weights"] <= 1)).all())
    assert trace["output"].abs().max() <= v.abs().max() * 1.01 + 1e-37
    assert "nan" not in [notice.id for notice in trace.notices]
    index = tuple(n - 1 for n in trace.shape("weights"))
    for step in trace.steps:
        place = index if step.symbol != "output" else (S - 1, d - 1)
        if step.shape == trace.shape("weights") or step.symbol == "output":
            assert not math.isnan(trace.explain(step.symbol, place).total), step.symbol


@given(st.lists(st.sampled_from(EDGES), min_size=12, max_size=12), st.booleans())
def test_no_nan_in_projections_of_finite_numbers(numbers, heads):
    X, W = torch.tensor(numbers).view(3, 4), torch.tensor(numbers[:8]).view(4, 2)
    W = torch.cat((W, -W), 1)
    trace = attempt(lambda: core.self_attention(X, W, W, W, W.T, heads=2 if heads else 1))
    if trace is not None:
        assert not any(bool(step.tensor.isnan().any()) for step in trace.steps)


def attempt(ask):
    """A trace, or None where the engine says that an input does not fit."""
    try:
        return ask()
    except InputError:
        return None


# --- links and files ------------------------------------------------------------------------------

NAMES = [*AttentionConfig().to_url(), "h", "g", "d_k", "d_v", "T", "B", "seed", "cross", "x",
         "tokens", "targets", "causal", "window", "lengths", "hidden", "scale", "softcap",
         "project", "gain", "dtype", "softmax_dtype", "edits", "lang", "page"]  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.sampled_from(["X", "W_Q", "\ud800", 10**400]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)  # fmt: skip


WORDS = st.sampled_from(["1", "0", "true", "bottom-right", "float16", "2,1", "-1,0"])
TEXTS = st.text() | st.integers().map(str) | st.floats().map(repr) | WORDS


@given(st.dictionaries(st.sampled_from(NAMES), TEXTS))
def test_any_link_opens(values):
    chosen, problems = AttentionConfig.from_url(values)
    assert all(isinstance(problem, InputError) and str(problem) for problem in problems)
    chosen.check_affordable()
    assert AttentionConfig.from_url(chosen.to_url()) == (chosen, [])
    if problems == [] and set(values) & set(NAMES[:-2]) and chosen == AttentionConfig():
        core.run(chosen, device="cpu")


@given(st.dictionaries(st.sampled_from(["tokens", "targets", "edits", "hidden"]), JSON))
def test_any_packed_value_opens(values):
    from core.config import _write

    packed = {}
    for name, value in values.items():
        try:
            packed[name] = _write(name, value)
        except UnicodeEncodeError:  # no link can carry half a character
            continue
    chosen, _ = AttentionConfig.from_url(packed)
    assert AttentionConfig.from_url(chosen.to_url()) == (chosen, [])
    assert attempt(lambda: core.run(chosen, device="cpu")) is not None


@st.composite
def configurations(pick):
    """Any configuration that can be written down."""
    h, cross = pick(st.sampled_from([1, 2, 4])), pick(st.booleans())
    B = pick(st.sampled_from([None, 1, 2]))
    S, T = pick(small), pick(small)
    T = T if cross else S
    words = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
    fields = {
        "S": S, "T": T, "H": 4 * pick(small), "h": h, "g": pick(st.sampled_from([None, 1, h])),
        "d_k": pick(st.sampled_from([None, 3])), "d_v": pick(st.sampled_from([None, 2])), "B": B,
        "seed": pick(st.integers(-(2**53), 2**53)), "cross": cross,
        "causal": pick(st.sampled_from([False, True, "bottom-right"])),
        "window": pick(st.none() | st.tuples(st.integers(-1, 5), st.integers(-1, 5))),
        "lengths": pick(st.none() | st.tuples(*[st.integers(0, T)] * (B or 1))),
        "hidden": pick(st.lists(st.tuples(st.integers(0, S - 1), st.integers(0, T - 1)),
                                max_size=3).map(tuple)),
        "scale": pick(st.none() | st.floats(-9, 9).map(lambda x: round(x, 4))),
        "softcap": pick(st.none() | st.floats(1e-3, 9)),
        "rotary": pick(st.sampled_from([None, "halves", "interleaved"])),
        "project": pick(st.booleans()), "gain": pick(st.floats(-5, 5)),
        "dtype": pick(st.sampled_from(["float32", "float64", "bfloat16", "float16"])),
        "softmax_dtype": pick(st.sampled_from([None, "float32", "float64"])),
        "tokens": (tuple(pick(st.lists(words, min_size=T, max_size=T))),) * (B or 1)
        if pick(st.booleans()) else (),
        "edits": pick(st.lists(st.tuples(st.just("W_V"), st.tuples(st.integers(0, 3), st.just(0)),
                                         st.floats(-65504, 65504)), max_size=2).map(tuple)),
    }  # fmt: skip
    if cross or (fields["d_k"] or fields["H"] // h) % 2:
        fields["rotary"] = None  # refused there
    return AttentionConfig(**fields)


@given(configurations())
def test_links_carry_everything(config):
    assert AttentionConfig.from_url(config.to_url()) == (config, [])
    assert config.changed() == config
    assert {config: 1}[AttentionConfig.from_url(config.to_url())[0]] == 1


@given(configurations())
def test_any_configuration_can_be_computed(config):
    trace = core.run(config, device="cpu")
    assert trace.sizes["S"] == config.S
    compile(trace.source(), "script", "exec")
    assert not any(bool(step.tensor.isnan().any()) for step in trace.steps)


def places(value, at=()):
    """Every place inside plain data."""
    lists = enumerate(value) if isinstance(value, list) else ()
    for key, child in value.items() if isinstance(value, dict) else lists:
        yield (*at, key)
        yield from places(child, (*at, key))


@pytest.fixture(scope="module")
def plain_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("file") / "t.safetensors"
    core.run(AttentionConfig(h=2, B=1, causal=True, softcap=2.0), device="cpu").save(path)
    with safe_open(path, framework="pt") as file:
        about = json.loads(file.metadata()["qkv_trace"])
        return path, about, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


@settings(max_examples=150)
@given(st.data())
def test_any_change_of_a_file_is_refused_or_harmless(plain_file, data):
    path, about, kept = plain_file
    about = copy.deepcopy(about)
    *road, last = data.draw(st.sampled_from(list(places(about))))
    spot = about
    for step in road:
        spot = spot[step]
    junk = JSON | st.sampled_from(["scores", "h", "B S H", {"kind": "swap"}, -1, 2**62, "T"])
    spot[last] = data.draw(junk)
    save_file(kept, path, metadata={"qkv_trace": json.dumps(about)})
    loaded = attempt(lambda: core.Trace.load(path))
    if loaded is None:
        return
    script = loaded.source()
    compile(script, "script", "exec")
    for step in loaded.steps:
        assert step.tensor.shape == step.shape
        place = tuple(n - 1 for n in step.shape)
        assert isinstance(loaded.explain(step.symbol, place).text, str)
    last = loaded.steps[-1]
    loaded.gradient(last.symbol, (0,) * len(last.shape))


@settings(max_examples=60)
@given(st.binary(max_size=300), st.integers(0, 5000))
def test_any_bytes_are_refused(plain_file, junk, at):
    path, about, kept = plain_file
    save_file(kept, path, metadata={"qkv_trace": json.dumps(about)})
    whole = path.read_bytes()
    for mangled in (junk, whole[: at % len(whole)], whole[:at] + junk + whole[at + len(junk) :]):
        path.write_bytes(mangled)
        attempt(lambda: core.Trace.load(path))
