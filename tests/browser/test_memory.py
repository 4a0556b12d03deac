"""The Memory page in a real browser: tied pictures, arithmetic, the walk, stages, keys, phone."""

import itertools
import re

import pytest

from core.memory import walk
from core.memory_chain import read_chain, write_chain
from core.memory_presets import PRESETS

EXAMPLE = {"shape": "1,4,2,3", "chain": "transpose(1,2)"}
LARGE = {"shape": "16,16,16", "chain": "permute(2,0,1)"}


@pytest.fixture
def memory(open_page):
    def open_memory(**query):
        page = open_page("/memory", **query)
        page.get_by_test_id("strides").locator("table").wait_for()
        return page

    return open_memory


def root(page):
    return page.get_by_test_id("strides")


def fact(page, name) -> str | None:
    return root(page).get_attribute(f"data-{name}")


def lit(page, kind) -> list[int]:
    cells = page.locator(f'[data-board="{kind}"] [data-lit]')
    return sorted(int(cell.get_attribute(f"data-{kind}")) for cell in cells.all())


def board(page, kind):
    return page.locator(f'[data-board="{kind}"]')


def stage_of(query, place=-1):
    shape = tuple(map(int, query["shape"].split(",")))
    return walk(shape, read_chain(query["chain"])).stages[place]


def test_an_element_lights_its_cell_and_writes_its_address(memory):
    page = memory(**EXAMPLE)
    board(page, "element").locator('[data-element="11"]').hover()
    assert fact(page, "element") == "0,0,3,2"
    assert fact(page, "address") == "20"
    assert lit(page, "element") == [11]
    assert lit(page, "address") == [20]
    words = page.get_by_test_id("strides-arithmetic").inner_text()
    assert re.sub(r"\s+", "", words).startswith(
        "element[0,0,3,2]=200·24i·s₀+0·3j·s₁+3·6k·s₂+2·1l·s₃=20cell"
    )


@pytest.mark.parametrize(
    "query",
    [EXAMPLE, {"shape": "4,6", "chain": "slice(1,1,6,2).narrow(0,1,2)"}, LARGE],
    ids=["transposed", "offset", "large"],
)
def test_the_arithmetic_is_the_one_of_the_engine_for_each_element(memory, query):
    page = memory(**query)
    stage = stage_of(query)
    board(page, "element").focus()
    for index in itertools.islice(itertools.product(*map(range, stage.shape)), 24):
        assert fact(page, "element") == ",".join(map(str, index))
        assert fact(page, "sum") == stage.explain(index)
        page.keyboard.press("ArrowRight")
    page.keyboard.press("End")
    last = tuple(size - 1 for size in stage.shape)
    assert fact(page, "sum") == stage.explain(last)


def test_each_element_shows_the_number_that_torch_holds_there(memory):
    preset = PRESETS["attention"]
    page = memory(shape="1,3,6", chain=write_chain(preset.chain), stage=7)
    found = walk(preset.shape, preset.chain)
    stage = found.stages[7]
    expected = [
        f"{found.storages[stage.storage][stage.address(index)]:.0f}"
        for index in itertools.product(*map(range, stage.shape))
    ]
    assert board(page, "element").locator("[data-element]").all_inner_texts() == expected


def test_a_cell_lights_all_elements_that_read_it(memory):
    page = memory(shape="3,1", chain="expand(3,4)")
    board(page, "address").locator('[data-address="1"]').hover()
    assert lit(page, "element") == [4, 5, 6, 7]
    assert "4 elements read cell 1" in page.get_by_test_id("strides-arithmetic").inner_text()


def test_a_cell_that_nobody_reads_says_so(memory):
    page = memory(shape="4,6", chain="slice(1,1,6,2)")
    board(page, "address").locator('[data-address="2"]').hover()
    assert lit(page, "element") == []
    assert "No element" in page.get_by_test_id("strides-arithmetic").inner_text()


def test_a_click_stays_when_the_pointer_leaves(memory):
    page = memory(**EXAMPLE)
    board(page, "element").locator('[data-element="4"]').click()
    page.get_by_role("heading", level=1).hover()
    assert fact(page, "element") == "0,0,1,1"
    board(page, "element").press("Escape")
    assert fact(page, "element") is None


def test_arrows_go_along_rows_columns_and_matrices(memory):
    page = memory(**EXAMPLE)
    board(page, "element").focus()
    for key, expected in [
        ("ArrowDown", "0,0,1,0"),
        ("ArrowRight", "0,0,1,1"),
        ("PageDown", "0,1,1,1"),
        ("End", "0,1,3,2"),
        ("ArrowRight", "0,1,3,2"),
        ("Home", "0,0,0,0"),
        ("ArrowUp", "0,0,0,0"),
    ]:
        page.keyboard.press(key)
        assert fact(page, "element") == expected, key


def test_no_arrow_press_is_lost(memory):
    page = memory(**LARGE)
    board(page, "element").focus()
    for _ in range(60):
        page.keyboard.press("ArrowRight", delay=0)
    assert fact(page, "element") == "0,3,12"


def test_a_row_of_the_table_shows_its_stage_and_stands_in_the_link(memory, settled):
    page = memory(**EXAMPLE)
    rows = root(page).locator("tbody tr[data-stage]")
    rows.nth(0).get_by_role("button", name="start").click()
    assert fact(page, "stage") == "0"
    assert rows.nth(0).get_by_role("button", name="start").get_attribute("aria-pressed") == "true"
    page.wait_for_url(re.compile("stage=0"))
    page.reload()
    root(page).locator("table").wait_for()
    assert fact(page, "stage") == "0"


def test_the_same_stage_can_be_picked_again_after_a_change(memory, settled):
    page = memory(**EXAMPLE)
    root(page).get_by_role("button", name="start").click()
    page.wait_for_url(re.compile("stage=0"))
    page.get_by_role("button", name="Add", exact=True).click()
    page.wait_for_url(re.compile(r"transpose%282%2C3%29$"))
    settled(page)
    root(page).get_by_role("button", name="start").click()
    page.wait_for_url(re.compile("stage=0"))


def test_an_operation_is_removed_from_the_table_and_brought_back(memory, settled):
    page = memory(shape="2,3,4", chain="transpose(0,1).flip(2).t()")
    page.get_by_role("button", name="Remove flip(2)").click()
    page.wait_for_url(re.compile(r"chain=transpose%280%2C1%29\.t%28%29"))
    settled(page)
    page.get_by_role("button", name="Undo", exact=True).click()
    page.wait_for_url(re.compile("flip"))


def test_a_refused_view_is_cured_by_a_click(memory, settled):
    page = memory(shape="1,4,2,3", chain="transpose(1,2).view(1,2,12)")
    assert page.get_by_text("view size is not compatible").is_visible()
    page.get_by_role("button", name=re.compile(r"contiguous\(\)\.view")).click()
    page.wait_for_url(re.compile("contiguous"))
    settled(page)
    assert fact(page, "stages") == "4"
    assert page.get_by_text("view size is not compatible").count() == 0


def test_the_table_tells_where_the_rule_breaks(memory):
    page = memory(**EXAMPLE)
    cells = root(page).locator("tbody tr").nth(1).locator("td, th").all_inner_texts()
    assert cells == [
        "1",
        "transpose(1,2)",
        "(1, 2, 4, 3)",
        "(24, 3, 6, 1)",
        "0",
        "no: dim 2, 6 ≠ 1·3",
        "A · same",
        "96 / 96",
        "×",
    ]
    facts = page.get_by_test_id("strides-facts").inner_text()
    assert "Not contiguous at dim 2: stride 6 ≠ 1·3 = 3 (stride · size of dim 3)." in facts


def test_the_walk_visits_every_element_in_order(memory):
    page = memory(**EXAMPLE)
    page.emulate_media(reduced_motion="no-preference")
    page.get_by_test_id("strides-speed").fill("5")
    board(page, "element").focus()
    page.keyboard.press("Space")
    page.locator('[data-testid="strides"][data-walked="23"]').wait_for()
    assert fact(page, "element") == "0,1,3,2"
    assert page.get_by_test_id("strides-play").inner_text() == "▶ Play"
    walked = page.get_by_test_id("strides-walk").inner_text()
    assert walked == "In logical order: 23 hops, 7 of them not to the next cell."


def test_space_stops_the_walk_and_goes_on_with_it(memory):
    page = memory(**LARGE)
    page.emulate_media(reduced_motion="no-preference")
    board(page, "element").focus()
    page.keyboard.press("Space")
    page.locator('[data-testid="strides"]:not([data-walked="0"])[data-walked]').wait_for()
    page.keyboard.press("Space")
    stopped = int(fact(page, "walked"))
    assert stopped > 0
    page.wait_for_timeout(600)
    assert int(fact(page, "walked")) == stopped


def test_with_reduced_motion_the_whole_path_appears_at_once(memory):
    page = memory(**EXAMPLE)
    page.get_by_test_id("strides-play").click()
    assert fact(page, "walked") == "23"
    assert page.get_by_test_id("strides-play").inner_text() == "▶ Play"


def test_a_screen_reader_can_walk_the_grid_and_hears_the_address(memory):
    page = memory(**EXAMPLE)
    grid = page.get_by_role("grid").first
    assert "(1, 2, 4, 3)" in grid.get_attribute("aria-label")
    assert grid.get_by_role("row").count() == 8
    assert grid.get_by_role("gridcell").count() == 24
    grid.focus()
    page.keyboard.press("ArrowDown")
    active = grid.get_attribute("aria-activedescendant")
    assert grid.locator(f"#{active}").get_attribute("aria-label") == "[0, 0, 1, 0]: 6"
    spoken = root(page).locator("[aria-live]").inner_text()
    assert spoken == "element [0, 0, 1, 0] = 6. 0·24 + 0·3 + 1·6 + 0·1 = 6"


def test_markup_in_a_link_stays_text(memory):
    page = memory(shape="<img src=x onerror=alert(1)>", chain="<script>alert(1)</script>")
    assert page.locator("img[src=x]").count() == 0
    assert page.get_by_text("onerror=alert(1)").first.is_visible()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_phone_shows_all_of_it_without_scrolling_sideways(memory, lang):
    page = memory(phone=True, lang=lang, **LARGE)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for kind in ("element", "address"):
        box = board(page, kind).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    board(page, "address").tap(position={"x": 60, "y": 3})
    assert fact(page, "address") is not None


ATTENTION = {"shape": "1,3,6", "chain": write_chain(PRESETS["attention"].chain), "stage": 7}


@pytest.mark.parametrize(
    ("query", "lang", "dark"),
    [
        (ATTENTION, "zh", False),
        (ATTENTION, "en", True),
        ({"shape": "1,4,2,3", "chain": "transpose(1,2).view(1,2,12)"}, "zh", True),
        ({"shape": "4,6", "chain": "slice(1,1,6,2)"}, "en", False),
        (LARGE, "en", True),
    ],
    ids=["attention", "attention-dark", "refused-dark", "slice", "large-dark"],
)
def test_no_serious_violation(memory, no_serious_violations, query, lang, dark):
    page = memory(dark=dark, lang=lang, **query)
    board(page, "element").focus()
    no_serious_violations(page)
