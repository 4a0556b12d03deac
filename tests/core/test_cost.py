"""Costs without numbers equal those of a trace with numbers, and torch's own counter."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

import core
from core import AttentionConfig
from core.cost import cost, crossover, sweep


@settings(max_examples=30, deadline=None)
@given(
    S=st.integers(1, 6),
    width=st.integers(1, 4),
    g=st.integers(1, 3),
    r=st.integers(1, 3),
    d_v=st.integers(1, 4),
    B=st.sampled_from([None, 1, 2]),
    causal=st.booleans(),
    project=st.booleans(),
    cross=st.booleans(),
    softcap=st.sampled_from([None, 5.0]),
)
def test_each_step_costs_what_the_engine_says(
    S, width, g, r, d_v, B, causal, project, cross, softcap
):
    config = AttentionConfig(
        S=S, T=S + 1 if cross else None, H=6, h=g * r, g=g, d_k=width, d_v=d_v, B=B, causal=causal,
        project=project, cross=cross, softcap=softcap,
    )  # fmt: skip
    trace = core.run(config)
    counted = cost(config).steps
    assert [(s.symbol, s.shape, s.flops) for s in counted] == [
        (s.symbol, s.shape, s.flops) for s in trace.steps
    ]
    for mine, theirs in zip(counted, trace.steps, strict=True):
        if not (mine.symbol == "merged" and theirs.shares):  # here and there merging is free
            assert mine.elements * trace.element_size(mine.symbol) == theirs.bytes, mine.symbol


@pytest.mark.parametrize("name", ["bert-base", "gpt2-small", "grouped", "cross"])
def test_products_equal_the_count_of_torch(name):
    config = core.PRESETS[name]
    with FlopCounterMode(display=False) as counter:
        core.run(config)
    flops = cost(config).flops
    assert counter.get_total_flops() == flops["project"] + flops["compare"] + flops["mix"]


def test_figures_of_the_presets():
    bert = AttentionConfig(S=1, H=768, h=1, d_k=64)
    assert cost(bert).parameters == 147_456  # one head's W_Q, W_K, W_V
    whole = cost(AttentionConfig(S=1, H=768, h=12, project=True))
    assert whole.parameters == 4 * 768 * 768
    assert whole.cache_per_token(2) == 2 * 768 * 2
    shared = cost(AttentionConfig(S=1, H=768, h=12, g=4, project=True))
    assert whole.cache_per_token(4) == 3 * shared.cache_per_token(4)


def test_scores_grow_with_the_square_of_s_and_crossover_is_where_they_overtake():
    config = AttentionConfig(S=4, H=32, h=4, project=True)
    short, long = sweep(config, "S", [64, 128])
    assert long.flops["compare"] == 4 * short.flops["compare"]
    assert long.flops["project"] == 2 * short.flops["project"]
    S = crossover(config)
    at, before = sweep(config, "S", [S, S - 1])
    assert at.flops["compare"] + at.flops["mix"] > at.flops["project"]
    assert before.flops["compare"] + before.flops["mix"] <= before.flops["project"]


def test_the_script_on_the_page_prints_the_same_products():
    from parts.cost_views import script

    config = AttentionConfig(S=64, H=32, h=4, g=2, project=True)
    names: dict = {}
    exec(script(config), names)
    flops = cost(config).flops
    assert names["products"] == flops["project"] + flops["compare"] + flops["mix"]
    assert isinstance(names["Q"], torch.Tensor)
