"""The page on three roles in a real browser: the switch, a moved point, contrast, phone width."""


def test_the_verdict_and_a_moved_point(open_page, settled, no_serious_violations):
    page = open_page("/roles")
    page.wait_for_selector(".js-plotly-plot")
    no_serious_violations(page)
    page.get_by_text("False in general").wait_for()
    page.get_by_text("Give all keys the same length").click()
    page.get_by_text("True under this condition").wait_for()
    slider = page.get_by_role("slider", name="Added to this weight")
    slider.focus()
    for _press in range(3):
        page.keyboard.press("ArrowRight")
    page.wait_for_url("**roles_by=0.3**")
    settled(page)
    page.get_by_text("K, V moved by 0").wait_for()


def test_three_dimensions_on_a_dark_phone_in_chinese(open_page, no_serious_violations):
    page = open_page("/roles", phone=True, dark=True, lang="zh", roles_d=3)
    page.wait_for_selector(".js-plotly-plot")
    main = page.get_by_test_id("stMain")
    assert main.evaluate("node => node.scrollWidth - node.clientWidth") <= 0
    no_serious_violations(page)
