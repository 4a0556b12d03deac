"""The translator in a browser: next word by keyboard, a step of the microscope, a head silenced."""

from playwright.sync_api import expect


def test_walk_open_and_cut(open_page, settled):
    page = open_page("/translator", english="the banker waits at the bank", word=1, place="cross")
    main = page.get_by_test_id("stMain")
    written = main.locator("h3").first
    expect(written).to_have_text("银行家")
    page.get_by_role("button", name="Next word").focus()
    page.keyboard.press("Enter")
    expect(written).to_have_text("银行家在")
    scope = page.get_by_test_id("microscope")
    expect(scope).to_have_attribute("data-symbol", "Y")
    scope.focus()
    page.keyboard.press("End")
    expect(scope).to_have_attribute("data-symbol", "projected")
    settled(page)
    assert "step=projected" in page.url
    page.get_by_role("button", name="decoder 1 · head 1").click()
    settled(page)
    assert "silent=decoder.1.1" in page.url
    expect(page.get_by_role("button", name="Put everything back")).to_be_visible()


def test_it_plays_by_itself_to_the_last_word(open_page, settled):
    page = open_page("/translator", english="cats sleep", word=1)
    page.get_by_role("button", name="Play", exact=True).first.click()
    expect(page.get_by_role("button", name="Next word")).to_be_disabled(timeout=20_000)
    slider = page.get_by_role("slider", name="Step of the translation")
    assert slider.get_attribute("aria-valuenow") == slider.get_attribute("aria-valuemax")
