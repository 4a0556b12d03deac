"""The Heads page in a real browser: cells that travel, keys, links, contrast, phone width."""

import pytest

ROOT = '[data-testid="microscope"]'
VIEWS = (
    {},
    {"way": "split"},
    {"way": "across"},
    {"part": "product"},
    {"part": "sharing", "share_g": "4"},
    {"part": "together"},
    {"part": "width"},
)
NAMES = ["right", "split", "across", "product", "sharing", "together", "width"]


def cells(page, symbol: str) -> dict[str, str]:
    """What stands in the cells of a matrix, by "row,column"."""
    matrix = page.locator(f'{ROOT} [data-matrix="{symbol}"]').last
    return {
        cell.get_attribute("data-cell"): cell.inner_text()
        for cell in matrix.locator("td[data-cell]").all()
    }


def tints(page, symbol: str) -> dict[str, str]:
    matrix = page.locator(f'{ROOT} [data-matrix="{symbol}"]').last
    return {
        cell.inner_text(): cell.evaluate("cell => getComputedStyle(cell).boxShadow")
        for cell in matrix.locator("td[data-cell]").all()
    }


def step_to(page, symbol: str) -> None:
    page.wait_for_selector(f'{ROOT}[data-symbol="{symbol}"]')


def test_cells_travel_into_heads_and_back(open_page):
    page = open_page("/heads")
    step_to(page, "Q")
    start = cells(page, "Q")
    assert (start["0,0"], start["1,4"], start["3,7"]) == ("1,1", "2,5", "4,8")
    page.locator(ROOT).focus()
    page.keyboard.press("ArrowRight")
    step_to(page, "Q_split")
    assert cells(page, "Q_split") == start
    page.keyboard.press("ArrowRight")
    step_to(page, "Q_heads")
    heads = cells(page, "Q_heads")
    assert [heads[f"{r},0"] for r in range(8)] == [
        "1,1", "2,1", "3,1", "4,1", "1,5", "2,5", "3,5", "4,5",
    ]  # fmt: skip
    page.keyboard.press("ArrowLeft")
    step_to(page, "Q_split")
    assert cells(page, "Q_split") == start
    for symbol in ("Q_heads", "weights", "output", "swapped", "contiguous", "merged"):
        page.keyboard.press("ArrowRight")
        step_to(page, symbol)
    assert cells(page, "merged") == start


def test_cells_are_seen_moving(open_page):
    page = open_page("/heads")
    page.emulate_media(reduced_motion="no-preference")
    step_to(page, "Q")
    page.locator(ROOT).focus()
    page.keyboard.press("ArrowRight")
    step_to(page, "Q_split")
    page.wait_for_timeout(600)  # steps in rapid succession do not fly
    flights = page.locator(ROOT).evaluate(
        """async (root) => {
            const key = {key: "ArrowRight", bubbles: true, composed: true};
            root.dispatchEvent(new KeyboardEvent("keydown", key));
            await new Promise(requestAnimationFrame);
            const flown = root.getAnimations({subtree: true}).map(({effect}) => effect);
            const cells = flown.filter(({target}) => target.dataset.cell !== undefined);
            return cells.filter((effect) => effect.getKeyframes()[0].transform).length;
        }"""
    )
    assert flights == 32


def test_a_cell_keeps_the_colour_of_its_head(open_page):
    page = open_page("/heads", move="Q_heads")
    step_to(page, "Q_heads")
    before, after = tints(page, "Q_split"), tints(page, "Q_heads")
    assert before == after
    first, second = after["2,1"], after["2,5"]
    assert first != second
    assert {after[f"{s},{c}"] for s in range(1, 5) for c in range(1, 5)} == {first}


def test_text_code_and_address_follow_the_step(open_page, settled):
    page = open_page("/heads")
    step_to(page, "Q")
    page.locator(ROOT).focus()
    for _press in range(6):
        page.keyboard.press("ArrowRight")
    step_to(page, "contiguous")
    page.wait_for_url("**move=contiguous**")
    settled(page)
    assert page.get_by_text("contiguous = swapped.contiguous()").is_visible()
    assert (
        page.locator('[data-table="steps"] tr[aria-current]').inner_text().startswith("contiguous")
    )
    page.reload()
    step_to(page, "contiguous")


def test_a_cell_says_where_it_came_from(open_page):
    page = open_page("/heads", move="Q_heads")
    step_to(page, "Q_heads")
    page.locator(f'{ROOT} [data-matrix="Q_heads"] td[data-cell="5,0"]').hover()
    lit = page.locator(f'{ROOT} [data-matrix="Q_split"] td.from')
    lit.wait_for()
    assert lit.all_inner_texts() == ["2,5"]


def test_parts_are_chosen_by_keyboard_and_kept_in_the_address(open_page, settled):
    page = open_page("/heads", heads_S=3)
    chosen = page.get_by_role("radio", name="Split and merge")
    chosen.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    page.wait_for_url("**part=product**")
    settled(page)
    assert page.get_by_role("table", name="W_Q (8, 8)").is_visible()
    assert "heads_S=3" in page.url
    page.reload()
    settled(page)
    assert page.get_by_role("table", name="Q = X · W_Q (3, 8)").is_visible()


def test_sizes_outlive_another_part_and_another_page(open_page, settled):
    page = open_page("/heads", heads_S=3, way="merge")
    page.get_by_role("radio", name="MHA, GQA, MQA").click()
    page.wait_for_url("**part=sharing**")
    settled(page)
    menu = page.get_by_role("button", name="Attention, step by step")
    menu.click()
    page.get_by_role("menuitem", name="Step through").click()
    page.wait_for_selector("h1:has-text('step by step')")
    settled(page)
    menu.click()
    page.get_by_role("menuitem", name="Heads").click()
    page.wait_for_selector('[data-table="map"]')
    page.get_by_role("radio", name="Split and merge").click()
    page.wait_for_selector('[data-table="difference"]')
    settled(page)
    assert page.get_by_label("S, sequence length").first.input_value() == "3"
    assert page.locator('[data-table="difference"] th[scope=col]').count() == 4


def test_a_size_that_does_not_fit_is_answered_beside_it(open_page, settled):
    page = open_page("/heads")
    page.get_by_label("h, heads").first.fill("3")
    page.keyboard.press("Enter")
    alert = page.get_by_role("alert")
    alert.wait_for()
    assert "H = 8 cannot be split into h = 3 heads" in alert.inner_text()
    page.get_by_label("h, heads").first.fill("4")
    page.keyboard.press("Enter")
    page.wait_for_selector(ROOT)
    settled(page)
    assert alert.count() == 0


@pytest.mark.parametrize("view", VIEWS, ids=NAMES)
def test_no_serious_violation_on_a_light_desktop(open_page, no_serious_violations, view):
    page = open_page("/heads", **view)
    if not view:
        step_to(page, "Q")
    no_serious_violations(page)


@pytest.mark.parametrize("view", VIEWS, ids=NAMES)
def test_a_dark_phone_in_chinese(open_page, no_serious_violations, view):
    """Nothing is wider than the screen, and nothing hard to read."""
    page = open_page("/heads", phone=True, dark=True, lang="zh", **view)
    main = page.get_by_test_id("stMain")
    assert main.evaluate("node => node.scrollWidth - node.clientWidth") <= 0
    for table in page.locator(".heads-table").all():
        box = table.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    no_serious_violations(page)
