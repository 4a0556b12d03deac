"""The library page in a real browser: question, acts, a book of one's own, contrast, phone."""

ROOT = '[data-testid="microscope"]'


def test_from_a_question_to_a_book_of_ones_own(open_page, settled, no_serious_violations):
    page = open_page("/library")
    page.wait_for_selector(f'{ROOT}[data-symbol="scores"]')
    no_serious_violations(page)
    page.get_by_role("radio", name="3 · Read: A·V").click()
    page.wait_for_selector(f'{ROOT}[data-symbol="output"]')
    page.wait_for_selector('[data-table="read"]')
    page.locator(ROOT).focus()
    page.keyboard.press("ArrowLeft")  # and back: the act follows the microscope
    page.wait_for_selector('[data-table="share"]')
    page.get_by_label("The reader's question").fill("football")
    page.keyboard.press("Enter")
    page.get_by_role("alert").filter(has_text="No word of the question").wait_for()
    page.get_by_text("Change the shelf").click()
    page.get_by_label("Its words, commas between").fill("star, football")
    page.get_by_role("button", name="Save").last.click()
    page.wait_for_url("**shelf=**")
    settled(page)
    assert page.get_by_text("Counted: football → stars.").is_visible()
    page.reload()
    settled(page)
    assert page.get_by_text("Counted: football → stars.").is_visible()


def test_a_dark_phone_in_chinese(open_page, no_serious_violations):
    page = open_page("/library", phone=True, dark=True, lang="zh", step="output")
    page.wait_for_selector(f'{ROOT}[data-symbol="output"]')
    main = page.get_by_test_id("stMain")
    assert main.evaluate("node => node.scrollWidth - node.clientWidth") <= 0
    no_serious_violations(page)
