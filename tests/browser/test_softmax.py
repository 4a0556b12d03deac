"""The softmax page in a real browser: editing by keyboard, the link, sliders, a phone."""

import re


def test_scores_are_edited_by_keyboard_and_stand_in_the_link(open_page, settled):
    page = open_page("/softmax")
    box = page.get_by_role("spinbutton", name="x₂")
    box.fill("2")
    box.press("Enter")
    page.wait_for_url(re.compile("scores="))
    settled(page)
    shares = page.locator("table").nth(1).locator("tr td:last-child").all_inner_texts()
    assert shares[0] == shares[1]
    address = page.url
    text = page.get_by_role("textbox", name=re.compile("^Scores"))
    text.fill("2, two")
    text.press("Enter")
    page.get_by_text("“two” is not a number").wait_for()
    assert text.input_value() == "2, two"
    page.goto(address)
    box.wait_for()
    assert box.input_value() == "2"


def test_sliders_change_what_they_explain(open_page, settled):
    page = open_page("/softmax", scores="12, 11, 10")
    outcomes = page.locator("table").last
    assert "breaks: NaN, NaN, NaN" in outcomes.inner_text()  # with c = 10
    page.get_by_role("slider", name="Constant c added to every score").focus()
    page.keyboard.press("Home")
    page.get_by_text("With c = −20").wait_for()
    settled(page)
    assert "breaks" not in outcomes.inner_text()
    page.get_by_role("slider", name="Temperature τ").focus()
    page.keyboard.press("End")
    page.get_by_text("At τ = 20 the largest share is 0.35").wait_for()


def test_twelve_scores_on_a_dark_phone_in_chinese(open_page, no_serious_violations):
    scores = "12, 11.5, 11, -10.25, 9, 8, 7, 6, 5, 4, 3, 2"
    page = open_page(
        "/softmax", phone=True, dark=True, lang="zh", scores=scores, softmax_dtype="float16"
    )
    no_serious_violations(page)
    wide = "(table) => table.getBoundingClientRect().right > innerWidth"
    assert page.evaluate(f"[...document.querySelectorAll('table')].filter({wide}).length") == 0
