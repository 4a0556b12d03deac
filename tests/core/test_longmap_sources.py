"""The sources have the pattern they claim, as weights."""

import math

import pytest
import torch

from core.errors import InputError
from core.longmap_sources import LOCAL_REACH, REPEATS, SLOPE, SOURCES, captured, make, options


def weights(source) -> torch.Tensor:
    q, k = source.q.double(), source.k.double()
    scores = q @ k.T / math.sqrt(q.shape[-1])
    if source.options.get("causal"):
        scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf)
    return scores.softmax(-1)


@pytest.mark.parametrize("S", [100, 512])
def test_an_induction_row_looks_at_the_token_after_each_earlier_occurrence(S):
    source = make("induction", S, seed=3)
    found, period = weights(source), -(-S // REPEATS)
    said = [source.tokens(i) for i in range(S)]
    assert len(set(said)) == period
    for i in (period, period + 7, S - 1):
        after = [j + 1 for j in range(i) if said[j] == said[i]]
        assert len(after) == i // period
        torch.testing.assert_close(
            found[i, after].sum(), torch.tensor(1.0).double(), atol=0.01, rtol=0
        )
        assert found[i, after].min() > 0.98 / len(after)
    assert found[1:period, 0].min() > 0.99  # nothing came before: the first token
    i, j = source.landmark
    assert said[j - 1] == said[i]


@pytest.mark.parametrize("S", [128, 1000])
def test_the_needle_weighs_nine_tenths_and_the_rest_of_its_row_is_even(S):
    source = make("needle", S, seed=5)
    found, (i, j) = weights(source), source.landmark
    assert i == S - 1
    assert found[i, j] == pytest.approx(0.9, abs=1e-5)
    rest = torch.cat([found[i, :j], found[i, j + 1 :]])
    torch.testing.assert_close(rest, torch.full_like(rest, 0.1 / (S - 1)), rtol=1e-3, atol=0)


def test_the_local_window_keeps_its_weight_near():
    found = weights(make("window", 1024))
    i = 512
    near = found[i, i - LOCAL_REACH : i + LOCAL_REACH + 1].sum()
    assert near > 0.99
    assert found[i, i] > 10 * found[i, i + LOCAL_REACH // 2 + 20]


def test_the_sink_takes_three_quarters_at_the_end_and_more_before():
    found = weights(make("sink", 512))
    assert 0.70 < found[-1, 0] < 0.78
    assert found[:, 0].min() > 0.69
    assert found[1:, 1:].max() < 0.15


def test_alibi_falls_by_its_slope():
    found = weights(make("alibi", 300))
    for i in (40, 299):
        ratio = found[i, i - 30] / found[i, i]
        assert ratio == pytest.approx(math.exp(-30 * SLOPE), rel=1e-9)


def test_random_scores_have_variance_one():
    source = make("random", 512)
    scores = source.q @ source.k.T / 8
    assert scores.var().item() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("name", SOURCES)
def test_a_seed_gives_the_same_numbers_again(name):
    first, again, other = make(name, 64, seed=1), make(name, 64, seed=1), make(name, 64, seed=2)
    assert torch.equal(first.q, again.q)
    assert torch.equal(first.k, again.k)
    assert name == "alibi" or not torch.equal(first.q, other.q)
    assert first.options == options(name)
    assert first.q.dtype == first.k.dtype == torch.float32


def test_every_token_has_a_word_of_its_own_at_any_length():
    source = make("induction", 40_000)
    said = {source.tokens(i) for i in range(40_000)}
    assert len(said) == -(-40_000 // REPEATS)


def test_unknown_sources_and_lengths_are_refused():
    with pytest.raises(InputError, match="induction, needle"):
        make("heads", 64)
    with pytest.raises(InputError, match="at least 8"):
        make("needle", 4)


class Call:
    """As much of a model's attention call as a source needs."""

    name, scale, softcap, bias = "layer 1", 0.25, 30.0, None

    def __init__(self, seen):
        self.q, self.k = torch.randn(1, 2, 5, 8), torch.randn(1, 1, 5, 8)
        self.seen = seen

    def visible(self, sample):
        return self.seen[None]


def test_captured_heads_keep_their_scale_and_mask():
    words = ["a", "b", "c", "d", "e"]
    source = captured(Call(torch.ones(5, 5).tril().bool()), words)
    assert source.options == {"causal": True, "scale": 0.25, "softcap": 30.0}
    assert (source.heads, source.shape, source.tokens(4)) == (2, (5, 5), "e")
    assert captured(Call(torch.ones(5, 5).bool()), words).options["causal"] is False


def test_captured_heads_with_a_mask_of_their_own_are_refused():
    hidden = torch.ones(5, 5).bool()
    hidden[2, 3] = False
    with pytest.raises(InputError, match="single pairs"):
        captured(Call(hidden), [])
