"""Long maps against softmax in plain float64, for any sizes, masks, scales and poolings."""

import math
import threading
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import core
from core import InputError, longmap
from core.figures import longmap as picture
from core.longmap import blocks, crew

INF = math.inf
TINY = 1e-36  # below this float32 holds too few digits to compare


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Plain(NamedTuple):
    """Scores, log-sum-exp and weights (h, S, T) in float64, by the book."""

    scores: torch.Tensor
    lse: torch.Tensor
    weights: torch.Tensor


def plain(q, k, *, scale=None, softcap=None, causal=False, window=None, **_rest) -> Plain:
    q, k = (x if x.ndim == 3 else x[None] for x in (q.double(), k.double()))
    k = k.repeat_interleave(len(q) // len(k), 0)
    S, T = q.shape[1], k.shape[1]
    s = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    s = s if softcap is None else softcap * (s / softcap).tanh()
    i = torch.arange(S)[:, None] + (T - S if causal == "bottom-right" else 0)
    j = torch.arange(T)
    left, right = window or (-1, -1)
    seen = torch.ones(S, T, dtype=torch.bool)
    seen &= (j <= i) if causal else True
    seen &= (j >= i - left) if left >= 0 else True
    seen &= (j <= i + right) if right >= 0 else True
    s = s.masked_fill(~seen, -INF)
    lse = s.logsumexp(-1)
    return Plain(s, lse, torch.where(seen, (s - lse[..., None]).exp(), 0.0).nan_to_num(0.0))


def pooled(weights, tiles, kind):
    """Tiles of (S, T), the last ones maybe shorter."""
    S, T = weights.shape
    down, across = -(-S // min(tiles, S)), -(-T // min(tiles, T))
    how = {"max": torch.amax, "mean": torch.mean, "sum": torch.sum}[kind]
    rows = [torch.stack([how(b, -1) for b in part.split(across, -1)], -1)
            for part in weights.split(down)]  # fmt: skip
    return torch.stack([how(row, 0) for row in rows])


def near(found, wanted, most=1e-5):
    found, wanted = found.double(), wanted.double()
    assert found.shape == wanted.shape
    assert not found.isnan().any()
    assert bool(((found - wanted).abs() <= most * (wanted.abs() + TINY)).all())


@st.composite
def asked(draw_from):
    """q, k and all options."""
    size = st.one_of(st.integers(1, 40), st.integers(1, 700))
    S, T, d = draw_from(size), draw_from(size), draw_from(st.sampled_from([1, 3, 16, 64]))
    heads = draw_from(st.sampled_from([None, (1, 1), (4, 2), (3, 3), (2, 1)]))
    lead = [(), ()] if heads is None else [(heads[0],), (heads[1],)]
    seed = draw_from(st.integers(0, 9))
    q, k = draw(*lead[0], S, d, seed=seed), draw(*lead[1], T, d, seed=seed + 10)
    k = k + draw_from(st.sampled_from([0.0, 3.0]))  # a mean key that all share
    side = st.sampled_from([-1, 0, 1, 10, 300])
    return q, k, {
        "tiles": draw_from(st.sampled_from([1, 2, 7, 64, 512])),
        "pool": draw_from(st.sampled_from(longmap.POOLS)),
        "causal": draw_from(st.sampled_from([False, True, "bottom-right"])),
        "window": draw_from(st.one_of(st.none(), st.tuples(side, side))),
        "scale": draw_from(st.sampled_from([None, None, 0.0, -0.3, 5.0, 400.0, -400.0])),
        "softcap": draw_from(st.sampled_from([None, None, None, 2.0, 50.0])),
    }  # fmt: skip


look = settings(max_examples=35, deadline=None, suppress_health_check=list(HealthCheck))


@look
@given(asked())
def test_a_map_is_softmax_pooled(case):
    q, k, options = case
    m, right = longmap.attention_map(q, k, **options), plain(q, k, **options)
    tiles, lse = (x if q.ndim == 3 else x[None] for x in (m.tiles, m.lse))
    for head, weights in enumerate(right.weights):
        near(tiles[head], pooled(weights, options["tiles"], options["pool"]))
    seen = right.lse > -INF
    assert torch.equal(lse == -INF, ~seen)
    torch.testing.assert_close(lse[seen], right.lse[seen], rtol=1e-7, atol=1e-5)
    assert m.exact
    assert m.done == 1.0
    assert ("blind" in [n.id for n in m.notices]) == bool((~seen).any())


@look
@given(asked(), st.data())
def test_rows_and_windows_are_those_of_softmax(case, data):
    q, k, options = case
    m, (scores, _, weights) = longmap.attention_map(q, k, **options), plain(q, k, **options)
    h, S, T = weights.shape
    entropy, largest, where = (
        x if q.ndim == 3 else x[None] for x in (m.entropy, m.largest, m.where)
    )
    wanted = -(weights * weights.clamp_min(1e-300).log()).sum(-1)
    torch.testing.assert_close(entropy, wanted, rtol=1e-5, atol=2e-5)
    near(largest, weights.amax(-1))
    blind = weights.amax(-1) == 0
    assert torch.equal(where < 0, blind)
    there = weights.gather(-1, where.clamp_min(0)[..., None])[..., 0]
    near(there, weights.amax(-1), 1e-5)
    head = data.draw(st.integers(0, h - 1))
    i, j = data.draw(st.integers(0, S - 1)), data.draw(st.integers(0, T - 1))
    rows, cols = data.draw(st.integers(1, S - i)), data.draw(st.integers(1, T - j))
    near(m.window(i, j, rows, cols, head), weights[head, i : i + rows, j : j + cols])
    torch.testing.assert_close(
        m.scores(i, j, rows, cols, head), scores[head, i : i + rows, j : j + cols].float()
    )
    kind = data.draw(st.sampled_from(longmap.POOLS))
    view = m.region(i, j, rows, cols, tiles=options["tiles"], pool=kind, head=head)
    near(view, pooled(weights[head, i : i + rows, j : j + cols], options["tiles"], kind))
    keys, found = m.strongest(i, 5, head)
    top = weights[head, i].topk(min(5, int((scores[head, i] > -INF).sum())))
    near(found, top.values)
    near(weights[head, i, keys], top.values, 1e-9)


@look
@given(asked(), st.integers(0, 3))
def test_stopping_and_resuming_gives_the_same_map(case, blocks_first):
    q, k, options = case
    calls = iter(range(10**6))
    small = pytest.MonkeyPatch()
    small.setitem(blocks.BLOCK, "cpu", (32, 64))
    small.setattr(crew, "CORES", 1)
    try:
        whole = longmap.attention_map(q, k, **options)
        states = list(longmap.refine(q, k, stop=lambda: next(calls) >= blocks_first, **options))
        part = states[-1]
        known = part.known.clone()
        torch.testing.assert_close(part.tiles[known], whole.tiles[known], rtol=0, atol=0)
        *_, last = [part, *longmap.refine(q, k, start=part, **options)]
    finally:
        small.undo()
    assert last.exact
    assert torch.equal(last.tiles, whole.tiles)
    assert torch.equal(last.lse, whole.lse)


def test_the_map_agrees_with_the_step_by_step_engine():
    q, k = draw(4, 9, 8), draw(2, 13, 8, seed=1)
    limits = {"causal": "bottom-right", "window": (4, -1), "softcap": 3.0, "scale": 0.7}
    t = core.attend(q[None], k[None], k[None], **limits)
    m = longmap.attention_map(q, k, **limits)
    torch.testing.assert_close(m.tiles, t["weights"][0])
    cell = m.cell(5, 8, head=3)
    terms = t.explain("scores", (0, 3, 5, 8)).terms
    torch.testing.assert_close(cell.products.tolist(), [x.value for x in terms])
    assert cell.weight == pytest.approx(float(t["weights"][0, 3, 5, 8]), rel=1e-5)
    assert cell.visible
    hidden = m.cell(0, 12, head=3)
    assert (hidden.visible, hidden.weight) == (False, 0.0)


def test_one_cell_of_a_row_by_hand():
    m = longmap.attention_map([[1.0, 2.0]], [[3.0, 4.0], [0.0, 0.0]], scale=0.1, softcap=2.0)
    cell = m.cell(0, 0)
    capped = 2 * math.tanh(1.1 / 2)
    assert cell.products.tolist() == [3.0, 8.0]
    assert (cell.raw, cell.scaled, cell.visible) == (11.0, pytest.approx(1.1), True)
    assert cell.capped == pytest.approx(capped)
    assert cell.lse == pytest.approx(math.log(math.exp(capped) + 1))
    assert cell.weight == pytest.approx(math.exp(capped) / (math.exp(capped) + 1))


def needles():
    """12 heads of S = 1,024 with 768 cells of weight about 0.4 among weights below 0.001."""
    S, d, h = 1024, 64, 12
    generator = torch.Generator().manual_seed(5)
    k = torch.nn.functional.normalize(torch.randn(h, S, d, generator=generator), dim=-1)
    q = torch.zeros(h, S, d)
    places = []
    for head in range(h):
        rows = torch.randperm(S, generator=generator)[:64]
        cols = torch.randperm(S, generator=generator)[:64]
        q[head, rows] = k[head, cols] * 7
        places += [(head, int(i), int(j)) for i, j in zip(rows, cols, strict=True)]
    return q, k, places


def test_every_needle_is_seen_from_above():
    q, k, places = needles()
    m = longmap.attention_map(q, k, tiles=128, scale=1.0)
    weights = plain(q, k, scale=1.0).weights
    shown = 0
    for head, i, j in places:
        value = float(weights[head, i, j])
        assert value > 0.3
        tile = float(m.tiles[head, i // 8, j // 8])
        level = int(picture.levels(np.array([tile]))[0])
        calm = int(picture.levels(np.array([1 / 1024]))[0])
        shown += tile >= value * (1 - 1e-5) and level > calm + 50
    assert (len(places), shown) == (768, 768)


def test_the_first_picture_is_a_sample_and_says_so():
    q, k = draw(1000, 16), draw(900, 16, seed=1)
    states = longmap.refine(q, k, tiles=100, causal="bottom-right")
    m = next(states)
    assert (m.exact, m.done, bool(m.known.any())) == (False, 0.0, False)
    right = plain(q, k, causal="bottom-right")
    middle = torch.arange(100) * 10 + 5
    near(m.tiles, torch.stack([x.amax(-1) for x in right.weights[0, middle].split(9, -1)], -1))
    near(m.window(17, 3, 5, 60), right.weights[0, 17:22, 3:63])  # exact all the same
    assert bool(m.lse[50:55].isnan().any())
    *_, last = states
    assert last is m
    assert m.exact
    near(m.tiles, pooled(right.weights[0], 100, "max"))


def test_of_very_many_rows_only_some_are_sampled(monkeypatch):
    from core.longmap import refining

    monkeypatch.setattr(refining, "COARSE", 100 * 900 * 16 * 2 / 4)
    q, k = draw(1000, 16), draw(900, 16, seed=1)
    m = next(longmap.refine(q, k, tiles=100))
    assert int((~m.lse.isnan()).sum()) == 25
    assert torch.equal(m.tiles[4], m.tiles[7])
    assert not torch.equal(m.tiles[3], m.tiles[4])


def test_stop_ends_it_between_blocks():
    q = draw(5000, 16)
    calls = iter(range(10**6))
    *_, last = longmap.refine(q, q, stop=lambda: next(calls) > 2)
    assert not last.exact
    assert last.done < 1


def test_a_map_of_other_tensors_is_not_resumed():
    q = draw(50, 4)
    m = next(longmap.refine(q, q))
    for other in ({"q": q + 1, "k": q}, {"q": q, "k": q, "causal": True}):
        with pytest.raises(InputError) as problem:
            next(longmap.refine(**other, start=m))
        assert problem.value.id == "map-start"


def test_scores_too_large_for_the_inputs_type_are_named():
    q, k = draw(40, 64).half(), draw(50, 64, seed=1).half()
    q[7], k[33] = 40.0, 40.0  # 64·1,600 = 102,400 > 65,504
    m = longmap.attention_map(q, k)
    assert [(n.id, n.facts["index"], n.facts["dtype"]) for n in m.notices] == [
        ("overflow-map", (7, 33), "float16")
    ]
    near(m.tiles, plain(q, k).weights[0])
    assert longmap.attention_map(q, k, causal=True).notices == ()  # the pair is hidden
    assert longmap.attention_map(q.float(), k.float()).notices == ()
    huge = torch.full((2, 4), 1e30)
    assert [n.id for n in longmap.attention_map(huge, huge).notices] == ["overflow-map"]
    assert longmap.attention_map(huge, huge).tiles.tolist() == [[0.5, 0.5]] * 2


def test_nan_is_named_and_does_not_spread_to_those_who_do_not_see_it():
    q, k = draw(20, 8), draw(20, 8, seed=1)
    right = plain(q, k, causal=True).weights[0]
    k[12, 3] = math.nan
    m = longmap.attention_map(q, k, causal=True)
    assert [(n.id, n.facts) for n in m.notices] == [("nan", {"symbol": "K", "index": (12, 3)})]
    near(m.tiles[:12], right[:12])
    assert bool(m.lse[12:].isnan().all())


def test_small_sums_of_a_long_row_keep_their_digits():
    q, k = torch.zeros(3, 4), draw(200_000, 4)
    m = longmap.attention_map(q, k, tiles=500, pool="sum")
    near(m.tiles, torch.full((3, 500), 1 / 500), 2e-6)
    assert m.entropy[0] == pytest.approx(math.log(200_000), rel=1e-7)


@pytest.mark.parametrize("cores", [1, 3])
def test_any_number_of_workers_gives_the_same_map(cores, monkeypatch):
    monkeypatch.setitem(blocks.BLOCK, "cpu", (64, 128))
    q = draw(700, 8)
    one = longmap.attention_map(q, q, causal=True, tiles=50)
    threads = torch.get_num_threads()
    monkeypatch.setattr(crew, "CORES", cores)
    assert torch.equal(longmap.attention_map(q, q, causal=True, tiles=50).tiles, one.tiles)
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("bound", [23.0, 47.0, 140.0, 2000.0])
def test_scores_that_round_worst_stay_within_a_hundred_thousandth(bound):
    """Each key is a query or its opposite: sums of 64 products of one sign, at any magnitude."""
    q = torch.nn.functional.normalize(draw(600, 64), dim=-1) * (bound / math.log2(math.e)) ** 0.5
    k = torch.cat([q[:300], -q[300:]])
    m = longmap.attention_map(q, k, tiles=200, scale=1.0)
    near(m.tiles, pooled(plain(q, k, scale=1.0).weights[0], 200, "max"))


def test_what_torch_is_set_to_is_put_back(monkeypatch):
    """Exact products and one core per worker while a map is made, also for threads born after."""
    monkeypatch.setattr(crew, "CORES", 2)
    monkeypatch.setattr(crew._settings, "cores", 2)
    before, found = torch.get_num_threads(), []

    def look_around(*_given):
        found.append((torch.get_float32_matmul_precision(), torch.get_num_threads()))
        return True

    torch.set_num_threads(2)
    torch.set_float32_matmul_precision("medium")
    try:
        crew.work([1, 2, 3], look_around, torch.device("cpu"))
        assert set(found) == {("highest", 1)}
        found.clear()
        thread = threading.Thread(target=look_around)
        thread.start()
        thread.join()
        assert found == [("medium", 2)]
    finally:
        torch.set_float32_matmul_precision("highest")
        torch.set_num_threads(before)


def test_a_row_looked_at_before_is_replaced_whole():
    """Its sample stood in a block of long queries, which needed a shift; its own block does not."""
    q = torch.ones(1200, 1) * 0.01
    q[900:] = 40.0
    k = torch.linspace(-1, 1, 50)[:, None]
    *_, m = longmap.refine(q, k, tiles=12, scale=30.0)
    assert torch.equal(m.lse, longmap.attention_map(q, k, tiles=12, scale=30.0).lse)
    near(m.lse.exp()[:900], plain(q, k, scale=30.0).lse[0, :900].exp())


def test_a_region_that_a_row_does_not_see_holds_nothing():
    q, k = torch.full((2, 1), 40.0), torch.tensor([[-1.0], [1.0]])
    m = longmap.attention_map(q, k, causal=True, scale=100.0)
    assert m.lse[0] == -4000
    assert m.region(0, 1, 1, 1, pool="mean").tolist() == [[0.0]]


def test_a_failure_of_a_worker_reaches_the_caller(monkeypatch):
    monkeypatch.setattr(crew, "CORES", 2)

    def fail(job, scratch, halted):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        crew.work([1, 2, 3], fail, torch.device("cpu"))


def refused():
    q, m = torch.ones(4, 2), longmap.attention_map(torch.ones(4, 2), torch.ones(5, 2))
    make = longmap.attention_map
    return {
        "rank-map": lambda: make(q, q[None]),
        "not-a-tensor": lambda: make(q, None),
        "same-width": lambda: make(q, torch.ones(4, 3)),
        "groups-divide": lambda: make(torch.ones(3, 4, 2), torch.ones(2, 4, 2)),
        "size-most": lambda: make(q, q, tiles=10**6),
        "size-least": lambda: make(q, q, tiles=0),
        "unknown-choice": lambda: make(q, q, pool="median"),
        "causal": lambda: make(q, q, causal="top"),
        "window": lambda: make(q, q, window=(1.5, 2)),
        "softcap": lambda: make(q, q, softcap=-1.0),
        "infinite": lambda: make(q, q * INF),
        "outside-map": lambda: m.cell(0, 5),
        "map-place": lambda: m.cell(0, 1.5),
        "view-large": lambda: make(torch.ones(5000, 1), q[:, :1].repeat(1000, 1)).window(
            0, 0, 5000, 4000
        ),
    }


@pytest.mark.parametrize("id", refused())
def test_what_does_not_fit_is_said(id):
    with pytest.raises(InputError) as problem:
        refused()[id]()
    assert problem.value.id == id


def test_a_view_takes_whole_numbers_only():
    m = longmap.attention_map(draw(2, 5, 4), draw(2, 6, 4, seed=1))
    for ask in (
        lambda: m.window(0.0, 0, 1, 1),
        lambda: m.window(0, "1", 1, 1),
        lambda: m.scores(0, 0, None, 1),
        lambda: m.region(0, 0, 2, torch.tensor(1.0)),
        lambda: m.row(math.nan),
        lambda: m.strongest(1, head=[0]),
    ):
        with pytest.raises(InputError) as problem:
            ask()
        assert problem.value.id == "map-place"
    narrow = m.window(np.uint8(4), torch.tensor(1), np.int8(1), 5)
    assert torch.equal(narrow, m.window(4, 1, 1, 5))
    assert m.cell(np.int64(1), 2, np.int64(1)).weight == m.cell(1, 2, 1).weight


def test_what_a_view_is_asked_beside_its_place_is_checked_too():
    m = longmap.attention_map(draw(2, 5, 4), draw(2, 6, 4, seed=1))
    for ask, id in (
        (lambda: m.region(0, 0, 2, 2, tiles=0), "size-least"),
        (lambda: m.region(0, 0, 2, 2, tiles=10**6), "size-most"),
        (lambda: m.region(0, 0, 2, 2, pool="median"), "unknown-choice"),
        (lambda: m.strongest(0, 0), "size-least"),
        (lambda: m.strongest(0, -1), "size-least"),
        (lambda: m.strongest(0, 2.5), "not-whole"),
        (lambda: picture.png(m, head=2), "outside-map"),
        (lambda: picture.figure(m, head=-1), "outside-map"),
    ):
        with pytest.raises(InputError) as problem:
            ask()
        assert problem.value.id == id
