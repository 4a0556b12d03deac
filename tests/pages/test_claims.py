"""The claims page without a browser."""

import pytest

from core.experiments.claims import CLAIMS, measure
from core.numbers import write


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", CLAIMS)
def test_each_claim_shows_what_was_measured(app_test, name, lang):
    app = app_test("claims", lang=lang, claim=name)
    text = "\n".join(element.value for element in app.markdown)
    for key, value in measure(name).items():
        if key != "holds":
            shown = str(value) if isinstance(value, bool | str) else write(value)
            assert f"`{shown}`" in text, key
    assert len(app.warning) == 1


def test_a_changed_number_runs_again_and_stands_in_the_link(app_test):
    app = app_test("claims", claim="shared")
    app.toggle(key="shared_equal").set_value(True).run()
    assert len(app.info) == 1
    assert not app.warning
    assert "equal=True" in app.code[0].value


def test_odd_links_open(app_test):
    app = app_test("claims", claim="nothing", shared_S="x")
    assert not app.exception
