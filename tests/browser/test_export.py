"""The downloaded file: opened from disk, without a network, in a browser that has nothing else."""

import numpy as np
import pytest

import core
from core.figures import standalone_html
from core.figures.frames import KINDS

HOSTILE = "<img src=x onerror=alert(1)>"
STAGE = '#figure[class*="js-plotly-plot"]'


@pytest.fixture(scope="module")
def trace():
    return core.run(core.preset("causal"))


@pytest.fixture
def noticed():
    """Errors and requests of the page; the test fails if one is left in here."""
    found = []
    yield found
    assert found == []


@pytest.fixture
def opened(new_context, tmp_path, trace, noticed):
    """`opened(dark=True)`: the file on a page without a network."""

    def open_(**chosen):
        path = tmp_path / "attention.html"
        prose = {symbol: f"About **{symbol}**: $d_k$ {HOSTILE}" for symbol in trace}
        labels = {"S": ["the", "cat", "the", "<b>sat</b>"]}
        text = {"title": HOSTILE, "play": "Play", "pause": "Pause"}
        html = standalone_html(trace, labels=labels, text=text, prose=prose, **chosen)
        path.write_text(html, encoding="utf-8")
        context = new_context(viewport={"width": 1280, "height": 900})
        context.set_offline(True)
        page = context.new_page()
        own = path.as_uri()
        page.on("request", lambda r: noticed.append(r.url) if foreign(r.url, own) else None)
        page.on("pageerror", lambda error: noticed.append(str(error)))
        page.on("dialog", lambda dialog: noticed.append(dialog.message))
        page.on("console", lambda m: noticed.append(m.text) if m.type == "error" else None)
        page.goto(own)
        page.wait_for_selector("body[data-ready]", timeout=60_000)
        return page

    return open_


def foreign(url, own):
    return url != own and not url.startswith(("data:", "blob:"))


def drawn(page, slot):
    """The finite numbers that the matrix at a place of the equation shows, −∞ as null."""
    return page.evaluate(
        "(at) => document.getElementById('figure')._fullData[at].z.map((row) => [...row])",
        slot * len(KINDS),
    )


def shown(page):
    """Symbol of the text, of the marked row, and of the slider."""
    return page.evaluate(
        """() => {
          const slider = document.getElementById('figure')._fullLayout.sliders[0];
          const row = document.querySelector('tr[aria-current]');
          return [
            document.querySelector('.step[data-current]').dataset.symbol,
            row.querySelector('button').textContent,
            slider.steps[slider.active].label.replace(/<.*?>/g, ''),
          ];
        }"""
    )


def wait_for(page, step):
    page.wait_for_selector(f'body[data-step="{step}"]')
    moved = "(n) => document.getElementById('figure')._fullLayout.sliders[0].active === n"
    page.wait_for_function(moved, arg=step)


def test_the_file_opens_with_its_first_step(opened, trace):
    page = opened()
    np.testing.assert_array_equal(np.float32(drawn(page, 0)), trace["X"].numpy())
    assert shown(page) == ["X", "X", "X"]
    assert page.locator("tr[data-step]").count() == len(trace)
    assert page.locator(".step:visible").count() == 1


def test_moving_the_slider_shows_the_step_there(opened, trace):
    page = opened()
    rail = page.locator(".slider-rail-touch-rect").bounding_box()
    at = list(trace).index("weights")
    share = at / (len(trace) - 1)
    page.mouse.click(rail["x"] + rail["width"] * share, rail["y"] + rail["height"] / 2)
    wait_for(page, at)
    assert shown(page) == ["weights"] * 3
    np.testing.assert_array_equal(np.float32(drawn(page, 1)), trace["weights"].numpy())
    before = np.array(drawn(page, 0), dtype=float)
    masked = trace["masked"].double().numpy()
    np.testing.assert_array_equal(before, np.where(np.isfinite(masked), masked, np.nan))


def test_keys_and_the_table_step_too_and_text_follows(opened, trace):
    page = opened()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    wait_for(page, 4)
    assert shown(page) == ["K", "K", "K"]
    page.keyboard.press("End")
    wait_for(page, len(trace) - 1)
    page.keyboard.press("ArrowLeft")
    wait_for(page, len(trace) - 2)
    page.get_by_role("button", name="scores").click()
    wait_for(page, list(trace).index("scores"))
    section = page.locator(".step:visible")
    assert "scores = Q @ K.transpose(-2, -1)" in section.inner_text()
    assert section.locator("math").first.text_content().replace(" ", "").startswith("scores=QK")
    np.testing.assert_array_equal(np.float32(drawn(page, 1)), trace["K"].T.numpy())


def test_play_moves_on_by_itself_and_pause_stops(opened):
    page = opened()
    page.locator(".updatemenu-button", has_text="Play").click()
    page.wait_for_selector('body[data-step="2"]', timeout=20_000)
    page.locator(".updatemenu-button", has_text="Pause").click()
    stopped = page.get_attribute("body", "data-step")
    assert stopped != "0"
    page.wait_for_timeout(2500)
    assert page.get_attribute("body", "data-step") == stopped


def test_what_was_typed_is_text_everywhere(opened):
    page = opened()
    assert page.locator("img").count() == 0
    assert page.locator("h1").inner_text() == HOSTILE
    assert HOSTILE in page.locator(".step:visible").inner_text()
    ticks = page.locator(".ytick text").all_text_contents()
    assert ticks[:4] == ["the", "cat", "the", "<b>sat</b>"]


def test_the_file_runs_no_script_but_its_own(opened, noticed):
    page = opened()
    page.evaluate(
        """() => {
          const script = document.createElement('script');
          script.textContent = 'document.body.dataset.hacked = 1';
          document.body.append(script);
        }"""
    )
    assert page.get_attribute("body", "data-hacked") is None
    assert "Content Security Policy" in noticed.pop()


def test_the_dark_file_is_dark_and_fits_a_phone(opened):
    page = opened(dark=True, lang="zh")
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(15, 26, 29)"
    assert page.get_attribute("html", "lang") == "zh"
