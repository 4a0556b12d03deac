"""The scaling page without a browser: the link, numbers on screen, verdicts, a stopped run."""

import json
import re

import pytest

from core.experiments.scaling import COUNTS, Entries, Pairs, Rows, point, sampled, snippet
from core.numbers import write
from parts import progress
from parts.scaling_controls import BROKEN, DISTRIBUTIONS, SIZES, SLIDERS, STATISTICS
from parts.text import catalog


@pytest.fixture
def scaling(app_test):
    return lambda lang="en", **query: app_test("scaling", lang=lang, **query)


def charts(app) -> list[dict]:
    return [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]


def prose(app) -> str:
    return "\n".join(each.value for each in app.main.markdown)


def cells(app, label: str) -> list[list[str]]:
    """The rows of all tables that are headed by this label."""
    text = "".join(each.proto.body for each in app.get("html"))
    rows = re.findall(rf'<th scope="row">{re.escape(label)}</th>(.*?)</tr>', text)
    return [re.findall("<td>(.*?)</td>", row) for row in rows]


def test_it_opens_with_width_64_and_the_claim_holds(scaling):
    app = scaling()
    found = sampled(Pairs())
    assert "As claimed" in app.success[0].value
    assert write(found.scaled.variance, 5) in app.success[0].value
    assert cells(app, "variance") == [[write(found.raw.variance), "64"],
                                      [write(found.scaled.variance), "1"]]  # fmt: skip
    assert cells(app, "3σ")[0][1] == "±24"
    assert [len(chart["data"]) for chart in charts(app)] == [4, 3, 6, 6]
    assert snippet(Pairs()).strip() in [code.value for code in app.code]


def test_the_link_says_what_is_sampled(scaling):
    app = scaling(scaling_d_k=1024, scaling_draw="laplace", scaling_pairs=1000, scaling_seed=5)
    found = sampled(Pairs(Entries("laplace"), 1024, 1000, 5))
    assert cells(app, "variance")[0] == [write(found.raw.variance), "1024"]
    assert app.query_params["scaling_d_k"] == "1024"
    app.select_slider(key="scaling_d_k").set_value(64).run()
    assert "scaling_d_k" not in app.query_params
    assert app.query_params["scaling_draw"] == "laplace"


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_assumption_is_told_with_its_numbers(scaling, broken, lang):
    app = scaling(lang, scaling_broken=broken)
    value = SLIDERS[broken][3]
    found = sampled(Pairs(Entries(**{broken: value})))
    assert not app.success
    assert write(found.scaled.variance, 5) in app.warning[0].value
    assert write(found.scaled.predicted.variance) in app.warning[0].value
    variances = cells(app, "variance" if lang == "en" else "方差")
    assert variances[1] == [write(found.scaled.variance),
                            write(found.scaled.predicted.variance), "1"]  # fmt: skip
    assert {trace["name"] for trace in charts(app)[0]["data"]} >= (
        {"normal curve, as claimed"} if lang == "en" else {"正态曲线，按说法"}
    )


def test_switches_stand_in_the_link_by_name(scaling):
    app = scaling()
    app.button_group(key="scaling_draw").set_value("uniform").run()
    app.button_group(key="scaling_broken").set_value(["variance", "across"]).run()
    app.slider(key="scaling_variance").set_value(2.5).run()
    assert app.query_params["scaling_draw"] == "uniform"
    assert app.query_params["scaling_broken"] == "variance,across"
    found = sampled(Pairs(Entries("uniform", variance=2.5, across=0.5)))
    expected = write(found.scaled.variance, 5)
    assert expected in app.warning[0].value
    link = {name: app.query_params[name] for name in ("scaling_draw", "scaling_broken")}
    again = scaling("zh", scaling_variance=2.5, **link)  # the browser writes sliders into the link
    assert expected in again.warning[0].value


def test_a_link_with_unknown_values_opens_with_the_usual_ones(scaling):
    app = scaling(
        scaling_d_k="x", scaling_draw="cauchy", scaling_broken="all,mean", scaling_T=7,
        scaling_seed="-4", scaling_shows="mode",
    )  # fmt: skip
    assert app.select_slider(key="scaling_d_k").value == 64
    assert app.button_group(key="scaling_draw").value == "normal"
    assert app.button_group(key="scaling_broken").value == ["mean"]
    assert app.select_slider(key="scaling_T").value == 32
    assert app.number_input(key="scaling_seed").value == 0


def test_the_averages_are_those_of_the_engine_and_follow_the_temperature(scaling):
    app = scaling(scaling_temperature=2.0, scaling_T=16)
    labels = ("entropy", "largest weight", "gradient by scores", "gradient by q")
    shown = [cells(app, label)[0] for label in labels]
    for column, divisor in enumerate((1.0, 8.0, 2.0)):
        found = point(Rows(T=16), 64, divisor)
        expected = [x.mean for x in (found.entropy, found.largest, found.jacobian, found.to_query)]
        numbers = [float(row[column]) for row in shown]
        assert numbers == pytest.approx(expected, rel=0.05)


def test_curves_show_the_median_or_the_mean(scaling):
    median, mean = scaling(), scaling(scaling_shows="mean")
    last = [charts(app)[3]["data"][0]["y"][-1] for app in (median, mean)]
    found = point(Rows(), 1024, 1.0).jacobian
    assert last == pytest.approx([found.median, found.mean])


def test_the_text_on_curves_follows_what_was_measured(scaling):
    assert "the curves stay level" in prose(scaling())
    assert "rises to" in prose(scaling())
    assert "does not keep the curves level" in prose(scaling(scaling_broken="within"))
    weak = scaling(scaling_broken="variance", scaling_variance=0.1)
    assert "not saturated yet" in prose(weak)


@pytest.fixture
def no_patience(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)


def test_a_stopped_run_keeps_what_there_is_and_goes_on(scaling, no_patience):
    app = scaling(scaling_d_k=1024, scaling_pairs=10_000)
    work = app.session_state["scaling_work"]
    assert (work.complete, work.found[-1].done) == (True, 10_000)
    # As if the reader had pressed the button after the first part.
    again = progress.Work(work.wanted, iter(work.found[1:]), work.found[:1], stopped=True)
    app.session_state["scaling_work"] = again
    app.run()
    assert "Stopped after 1 of 3 parts." in [caption.value for caption in app.caption]
    assert "4,096 pairs drawn" in "\n".join(caption.value for caption in app.caption)
    app.button(key="scaling_work_continue").click().run()
    assert "10,000 pairs drawn" in "\n".join(caption.value for caption in app.caption)


def test_a_new_setting_begins_anew(scaling):
    app = scaling(scaling_d_k=1024, scaling_pairs=10_000)
    first = app.session_state["scaling_work"]
    app.number_input(key="scaling_seed").set_value(1).run()
    second = app.session_state["scaling_work"]
    assert second is not first
    assert second.wanted.seed == 1


def test_every_choice_has_a_chinese_label():
    labels = [*DISTRIBUTIONS.values(), *BROKEN.values(), *STATISTICS.values()]
    labels += [label for label, *_rest in SLIDERS.values()]
    merged = catalog("zh")._catalog
    assert [label for label in labels if label not in merged] == []


def test_every_size_can_be_linked():
    assert all(size in SIZES for size in (1, 64, 128, 1024))
    assert COUNTS[-1] == 1_000_000
