"""The cost page without a browser."""

import pytest

from core import AttentionConfig
from core.cost import cost


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_totals_are_those_of_the_engine(app_test, lang):
    app = app_test("cost", lang=lang)
    counted = cost(AttentionConfig(S=1024, H=768, h=12, project=True, causal=True))
    values = [metric.value for metric in app.metric]
    assert values[0] == "2.36 M"
    assert counted.parameters == 2_359_296
    assert values[3] == "6.29 MB"
    assert counted.cache_per_token(4) * 1024 == 6_291_456


def test_own_sizes_come_from_the_link_and_misfits_are_said(app_test):
    app = app_test("cost", cost_layer="own", cost_H=128, cost_h=4, cost_g=2, cost_S=64)
    assert app.metric[0].value == "49.2 k"  # 128·128 + 2·128·64 + 128·128
    app = app_test("cost", lang="zh", cost_layer="own", cost_H=128, cost_h=12, cost_g=4)
    assert "128" in app.error[0].value
    assert "12" in app.error[0].value
    assert not app.metric


@pytest.mark.parametrize("vary", ["S", "H", "h", "g", "d_k"])
@pytest.mark.parametrize("show", ["flops", "memory", "parameters", "cache"])
def test_every_curve_draws(app_test, vary, show):
    app = app_test("cost", cost_vary=vary, cost_show=show)
    assert len(app.get("plotly_chart")) == 2
