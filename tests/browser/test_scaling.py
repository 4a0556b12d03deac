"""The scaling page in a real browser: a long run that is stopped and goes on, keys, a phone."""

import re

from playwright.sync_api import TimeoutError


def drawn(page) -> int:
    """How many pairs the caption under the histograms says were drawn."""
    text = page.get_by_text(re.compile(r"pairs drawn with seed")).inner_text()
    return int(text.split()[0].replace(",", ""))


def go_on(page):
    """Press Continue; on a busy machine a press may fall on a button that is being replaced."""
    for wait in (10_000, 30_000):
        page.get_by_role("button", name="Continue").click()
        try:
            return page.get_by_role("progressbar").wait_for(timeout=wait)
        except TimeoutError:
            continue
    raise AssertionError("the run does not go on")


def test_a_long_run_shows_its_progress_stops_goes_on_and_is_interrupted(open_page, settled):
    page = open_page("/scaling", scaling_d_k=1024)
    assert drawn(page) == 10_000
    pairs = page.get_by_role("slider", name="Pairs of a query and a key")
    pairs.focus()
    page.keyboard.press("End")  # 1,000,000 pairs of width 1,024: far longer than this test
    page.get_by_role("progressbar").wait_for()
    page.get_by_role("button", name="Stop the run").click()
    settled(page)
    done = drawn(page)
    assert 4_000 < done < 1_000_000
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Stop the run").click()
    settled(page)
    assert drawn(page) > done
    go_on(page)
    pairs.focus()
    page.keyboard.press("Home")  # another setting is an interruption too
    settled(page)
    assert drawn(page) == 100
    assert "scaling_pairs=100" in page.url


def test_an_assumption_is_broken_by_keyboard_on_a_dark_phone_in_chinese(
    open_page, settled, no_serious_violations
):
    page = open_page("/scaling", lang="zh", dark=True, phone=True)
    page.get_by_role("button", name="方差不为 1").focus()
    page.keyboard.press("Space")
    page.get_by_text("与说法不符").wait_for()
    settled(page)
    assert "scaling_broken=variance" in page.url
    page.get_by_role("slider", name=re.compile("σ²")).focus()
    for _press in range(3):
        page.keyboard.press("ArrowRight")
    page.get_by_text("18.49").first.wait_for()  # 4.3², the variance predicted after the division
    settled(page)
    assert "scaling_variance=4.3" in page.url
    no_serious_violations(page)
