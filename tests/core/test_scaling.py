"""Why √d_k: what is measured agrees with what is predicted, and the claim holds only as assumed."""

import itertools

import pytest
import torch

from core import InputError, attend
from core.experiments import scaling
from core.experiments.scaling import (
    EXCESS,
    WIDTHS,
    Entries,
    Pairs,
    Rows,
    point,
    row_jacobians,
    sample,
    sampled,
    snippet,
    sweep,
    sweep_snippet,
    unscaled,
    unscaled_snippet,
)

BROKEN = (
    Entries(variance=4.0),
    Entries(mean=1.0),
    Entries(within=0.5),
    Entries(across=0.5),
    Entries("laplace", 2.0, 0.5, 0.3, -0.4),
    Entries("uniform", 0.5, -1.0, 0.6, 0.7),
    Entries("rademacher", 1.0, 0.0, 0.2, 0.9),
)


def run(source: str) -> dict:
    """Execute a script that the page shows."""
    scope: dict = {}
    exec(source, scope)
    return scope


@pytest.mark.parametrize("distribution", EXCESS)
def test_entries_have_mean_0_variance_1_and_their_fourth_moment(distribution):
    x = scaling.standard(distribution, (400_000,), torch.Generator().manual_seed(1)).double()
    assert x.mean().item() == pytest.approx(0, abs=0.01)
    assert x.var().item() == pytest.approx(1, abs=0.02)
    assert (x**4).mean().item() - 3 == pytest.approx(EXCESS[distribution], abs=0.25)


@pytest.mark.parametrize("d_k", [1, 3, 64, 1024])
@pytest.mark.parametrize("distribution", EXCESS)
def test_the_claim_holds_for_entries_as_assumed(distribution, d_k):
    found = sampled(Pairs(Entries(distribution), d_k, 3_000, seed=3))
    assert found.raw.predicted == found.raw.claimed == scaling.Moments(0.0, float(d_k))
    assert found.raw.agrees(d_k)
    assert found.becomes_one
    assert found.scaled.variance == pytest.approx(1, abs=0.25)


def test_at_width_64_three_deviations_are_24():
    found = sampled(Pairs(d_k=64, count=50_000))
    assert found.raw.predicted.deviation == 8
    assert 3 * found.raw.measured.deviation == pytest.approx(24, abs=0.2)
    assert found.raw.beyond == pytest.approx(0.003, abs=0.001)
    assert 3 * found.scaled.measured.deviation == pytest.approx(3, abs=0.03)


@pytest.mark.parametrize("entries", BROKEN, ids=str)
def test_the_claim_fails_for_other_entries_and_the_prediction_still_holds(entries):
    found = sampled(Pairs(entries, 64, 20_000, seed=5))
    assert not entries.as_assumed
    assert not found.becomes_one
    assert found.raw.agrees(found.raw.predicted.variance)
    assert found.scaled.agrees(found.scaled.predicted.variance)
    error = 4 * (found.raw.predicted.variance / 20_000) ** 0.5
    assert found.raw.measured.mean == pytest.approx(found.raw.predicted.mean, abs=error)


def test_predictions_at_width_64():
    moments = {name: Entries(**{name: value}).moments(64) for name, value in
               {"variance": 4.0, "mean": 1.0, "within": 0.5, "across": 0.5}.items()}  # fmt: skip
    assert {name: (m.mean, m.variance / 64) for name, m in moments.items()} == {
        "variance": (0.0, 16.0),
        "mean": (64.0, 3.0),
        "within": (0.0, 16.75),
        "across": (32.0, 1.25),
    }


def test_a_long_sample_comes_in_chunks_and_ends_as_the_whole(monkeypatch):
    monkeypatch.setattr(scaling, "CHUNK", 64 * 700)
    pairs = Pairs(count=2_000)
    assert pairs.chunks == (700, 700, 600)
    parts = list(sample(pairs))
    assert [part.done for part in parts] == [700, 1400, 2000]
    assert scaling.sampled.__wrapped__(pairs) == parts[-1]


def test_a_histogram_covers_all_but_a_few_scores():
    for entries in (Entries(), Entries("rademacher"), Entries("rademacher", 3.0)):
        for spread in (sampled(Pairs(entries, 64)).raw, sampled(Pairs(entries, 64)).scaled):
            widths = [b - a for a, b in itertools.pairwise(spread.edges)]
            inside = sum(w * d for w, d in zip(widths, spread.density, strict=True))
            assert inside == pytest.approx(1, abs=0.002)


def test_bins_on_a_lattice_hold_equally_many_values():
    spread = sampled(Pairs(Entries("rademacher"), 64)).raw
    middle = [d for e, d in zip(spread.edges, spread.density, strict=False) if abs(e) < 8]
    assert len(middle) > 6
    assert min(middle) > 0.5 * max(middle)


def test_the_normal_curve_is_a_density():
    xs, heights = scaling.normal_density(scaling.Moments(3.0, 4.0))
    area = torch.trapezoid(torch.tensor(heights), torch.tensor(xs)).item()
    assert area == pytest.approx(1, abs=1e-4)
    assert xs[heights.index(max(heights))] == pytest.approx(3.0)


# --- softmax and gradient ---------------------------------------------------------------------


def test_without_scaling_softmax_saturates_and_with_it_nothing_changes():
    """Pins the verdict: entropy and typical gradient shrink with d_k unless divided by √d_k."""
    found = {points[0].d_k: points for points in sweep(Rows(), 8.0)}
    assert tuple(found) == WIDTHS
    raw, scaled, own = found[1024]
    assert raw.entropy.mean == pytest.approx(0.1, abs=0.06)
    assert raw.largest.mean == pytest.approx(0.96, abs=0.03)
    assert raw.jacobian.median < 0.002
    for d_k in WIDTHS:
        assert found[d_k][1].entropy.mean == pytest.approx(3.03, abs=0.1)
        assert found[d_k][1].largest.mean == pytest.approx(0.16, abs=0.04)
        assert found[d_k][1].jacobian.median == pytest.approx(0.23, abs=0.04)
    # The gradient at first grows: without scaling it peaks near d_k = 16.
    assert found[16][0].jacobian.median > found[1][0].jacobian.median > raw.jacobian.median
    # One's own fixed number is right at one width only.
    assert found[64][2].entropy == found[64][1].entropy
    assert own.largest.mean > 3 * scaled.largest.mean


def test_the_mean_gradient_by_the_query_does_not_vanish_but_the_typical_one_does():
    raw, scaled = (point(Rows(rows=64), 1024, divisor) for divisor in (1.0, 32.0))
    assert raw.to_query.mean > scaled.to_query.mean
    assert raw.to_query.median < scaled.to_query.median / 3


def test_jacobians_are_those_of_autograd():
    x = torch.randn(3, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for row, found in zip(x, row_jacobians(x), strict=True):
        known = torch.autograd.functional.jacobian(lambda r: r.softmax(-1), row)
        torch.testing.assert_close(found, known, rtol=0, atol=1e-15)


def test_the_gradient_by_the_query_is_that_of_autograd_all_the_way():
    rows = Rows(T=6, rows=4)
    found = point(rows, 16, 4.0)
    q, k = rows.entries.draw((4, 1, 1, 16), (4, 1, 6, 16), scaling._generator(0))
    norms = []
    for own, keys in zip(q[:, 0, 0].double(), k[:, 0].double(), strict=True):
        whole = torch.autograd.functional.jacobian(
            lambda q, keys=keys: (keys @ q / 4).softmax(-1), own
        )
        norms.append(whole.norm().item())
    assert found.to_query.mean == pytest.approx(sum(norms) / 4, rel=1e-5)


def test_one_row_is_the_engines():
    raw, scaled, own = scaling.one_row(Rows(), 64, 2.0)
    q, k = scaling._drawn(Rows(), 64)
    known = attend(q, k, k[..., :1])["weights"][0, 0, 0].sort(descending=True)[0]
    assert scaled == tuple(known.tolist())
    assert raw[0] > own[0] > scaled[0]


@pytest.mark.parametrize("seed", range(3))
def test_t5_needs_no_division_as_its_initialisation_holds_it(seed):
    found = unscaled(64, seed)
    assert found.t5 == pytest.approx(1, abs=0.1)
    assert found.usual == pytest.approx(64 * found.t5, rel=1e-4)


# --- the code shown ---------------------------------------------------------------------------


@pytest.mark.parametrize("entries", [*map(Entries, EXCESS), *BROKEN], ids=str)
def test_the_sampling_code_gives_the_same_scores(entries, capsys):
    pairs = Pairs(entries, 48, 1_000, seed=7)
    dots = run(snippet(pairs))["dots"].double().cpu()
    found = sampled(pairs)
    assert found.raw.measured.mean == pytest.approx(dots.mean().item(), abs=1e-5)
    assert found.raw.measured.variance == pytest.approx(dots.var().item(), rel=1e-5)


def test_the_sampling_code_draws_in_the_same_chunks(monkeypatch, capsys):
    monkeypatch.setattr(scaling, "CHUNK", 48 * 300)
    pairs = Pairs(d_k=48, count=1_000, seed=7)
    dots = run(snippet(pairs))["dots"].double().cpu()
    measured = list(sample(pairs))[-1].raw.measured
    assert measured.variance == pytest.approx(dots.var().item(), rel=1e-5)


def test_the_sweeping_code_gives_the_same_curves(capsys):
    rows = Rows(Entries("uniform", 2.0), T=8, rows=4, seed=2)
    found = run(sweep_snippet(rows, 5.0))["found"]
    for points in sweep(rows, 5.0):
        for p in points:
            measured = [x.mean for x in (p.entropy, p.largest, p.jacobian, p.to_query)]
            assert measured == pytest.approx(found[p.d_k, p.divisor], rel=1e-3, abs=1e-7)


def test_the_t5_code_gives_the_same_variances(capsys):
    found = run(unscaled_snippet(64, 1))["found"]
    assert found == pytest.approx([unscaled(64, 1).usual, unscaled(64, 1).t5], rel=1e-4)


# --- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "id"),
    [
        (lambda: Entries("cauchy"), "unknown-choice"),
        (lambda: Entries(variance=-1.0), "size-least"),
        (lambda: Entries(within=1.5), "size-most"),
        (lambda: Entries(mean=float("nan")), "not-a-number"),
        (lambda: Pairs(d_k=0), "size-least"),
        (lambda: Pairs(d_k=2048), "size-most"),
        (lambda: Pairs(count=10**7), "size-most"),
        (lambda: Rows(T=1), "size-least"),
        (lambda: point(Rows(), 4, 0.0), "size-least"),
    ],
)
def test_what_cannot_be_sampled_is_refused(make, id):
    with pytest.raises(InputError) as refused:
        make()
    assert refused.value.id == id
