"""Long maps in a real browser: down to a needle by wheel and by keys, a stopped run, files."""

import io
import re

import numpy as np
import pytest

from core.longmap_sources import make


def facts(page) -> dict:
    return page.get_by_test_id("map").evaluate("(node) => ({...node.dataset})")


def numbers(text) -> list[int]:
    return [int(part) for part in text.split(",")]


@pytest.fixture
def open_map(open_page):
    def open_(**query):
        options = {name: query.pop(name) for name in ("dark", "phone", "lang") if name in query}
        page = open_page("/map", **options, **({"map_S": 512} | query))
        page.locator('[data-testid="map"][data-painted]').wait_for()
        page.get_by_test_id("map-stage").evaluate(
            "(node) => node.scrollIntoView({block: 'center'})"
        )
        return page

    return open_


def until(page, name, value) -> None:
    """Wait until the map says `value` for `name` (a pattern)."""
    page.wait_for_function(
        """([name, pattern]) => {
          const find = (node) => node.dataset?.testid === 'map' ? node
            : [...(node.shadowRoot?.children ?? []), ...node.children].map(find).find(Boolean);
          return new RegExp(pattern).test(find(document.body)?.dataset[name] ?? '');
        }""",
        arg=[name, value],
    )


def place(page, i, j) -> tuple[float, float]:
    """Where on the screen a cell of the map is."""
    top, left, rows, cols = map(float, facts(page)["rect"].split(","))
    stage = page.get_by_test_id("map-stage")
    box = stage.bounding_box()
    x, y = (62 if box["width"] >= 420 else 50), 26
    side = box["height"] - y - 1
    down, across = (
        min(side - 3, max(3, share * side))  # what is half out of sight is taken at the edge
        for share in ((i + 0.5 - top) / rows, (j + 0.5 - left) / cols)
    )
    return box["x"] + x + across, box["y"] + y + down


def test_the_wheel_leads_to_the_needle_and_its_exact_value(open_map):
    page = open_map(map_source="needle")
    source = make("needle", 512)
    i, j = source.landmark
    weight = float((source.q[i].double() @ source.k.double().T / 8).softmax(-1)[j])
    for _ in range(30):
        if numbers(facts(page)["view"])[2] <= 12:
            break
        before = facts(page)["painted"]
        page.mouse.move(*place(page, i, j))
        page.mouse.wheel(0, -240)
        until(page, "painted", f"^(?!{before}$)")
    until(page, "numbers", "1")
    x, y = place(page, i - 6, j)
    page.mouse.move(x, y)
    page.mouse.down()  # the map is dragged up to its end, where the needle is
    page.mouse.move(x, y - 300, steps=4)
    page.mouse.up()
    until(page, "picture", "^504,")
    page.mouse.move(*place(page, i, j))
    readout = page.get_by_test_id("map-readout")
    assert readout.inner_text() == f"query {i}, key {j}: weight 0.9"
    page.mouse.click(*place(page, i, j))
    until(page, "cell", f"^{i},{j}$")
    assert float(facts(page)["value"]) == pytest.approx(weight, rel=1e-6)
    cell = page.get_by_test_id("map-cell")
    assert "weight = e^" in cell.inner_text().replace("\n", "")
    terms = cell.locator("tbody tr td:last-child").all_text_contents()
    products = [float(text.replace("−", "-")) for text in terms]
    assert sum(products) == pytest.approx(float(source.q[i] @ source.k[j]), rel=1e-3)
    page.wait_for_url(re.compile(f"cell={i}%2C{j}"))
    assert page.evaluate("history.length") == 2  # the way back leads out, not through each move
    page.reload()
    until(page, "cell", f"^{i},{j}$")
    assert numbers(facts(page)["view"])[2] <= 13


def test_keys_alone_lead_down_to_a_weight_and_back(open_map):
    page = open_map(map_source="needle", lang="zh")
    i, j = make("needle", 512).landmark
    stage = page.get_by_test_id("map-stage")
    stage.focus()
    for _ in range(2):
        page.keyboard.press("Shift+ArrowDown")  # to the last row, where the needle is
    for _ in range(16):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    until(page, "numbers", "1")
    assert numbers(facts(page)["cell"])[0] >= 500
    field = page.get_by_role("textbox", name="查询 i")
    field.fill("512")
    field.press("Enter")
    assert field.evaluate("(node) => node.validationMessage") == "请填 0 到 511 的整数。"
    field.fill(str(i))
    page.get_by_role("textbox", name="键 j").fill(str(j))
    page.keyboard.press("Enter")
    until(page, "cell", f"^{i},{j}$")
    stage.focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    page.keyboard.press(" ")
    until(page, "cell", f"^{i - 1},{j}$")
    live = page.locator("[data-testid=map] [aria-live]")
    assert live.inner_text().startswith(f"查询 {i - 1}，键 {j}：权重")
    page.keyboard.press("Home")
    until(page, "picture", "^0,0,512,512$")
    page.keyboard.press("+")
    until(page, "view", ",25[67],25[67]$")
    page.keyboard.press("Escape")
    page.wait_for_url(re.compile("^((?!cell=).)*$"))


def test_a_strongest_key_is_one_press_away(open_map):
    page = open_map(map_source="induction", cell="300,5")
    source = make("induction", 512)
    row = page.get_by_test_id("map-row")
    first = row.locator("tbody tr").first
    after = 300 - 171 + 1  # the period of 512 in three is 171
    assert first.locator("button").inner_text() == str(after)
    assert source.tokens(after) in first.inner_text()
    first.locator("button").click()
    until(page, "cell", f"^300,{after}$")
    assert float(facts(page)["value"]) > 0.98


def test_a_long_run_is_stopped_and_what_is_there_stays_exact(open_map):
    page = open_map(map_source="random", map_S=131_072, map_seed=5)
    until(page, "coarse", "sample")
    run = page.get_by_test_id("stCheckbox").filter(has_text="Keep computing")
    run.locator("label").click()
    page.get_by_text(re.compile("^Stopped: \\d+ % of the rows are exact")).wait_for()
    page.get_by_role("textbox", name="query i").fill("120,000")
    page.get_by_role("textbox", name="key j").fill("7")
    page.get_by_role("button", name="Go there").click()
    until(page, "cell", "^120000,7$")
    source = make("random", 131_072, seed=5)
    weight = (source.q[120_000].double() @ source.k.double().T / 8).softmax(-1)[7]
    assert float(facts(page)["value"]) == pytest.approx(float(weight), rel=1e-6)
    run.locator("label").click()
    page.get_by_text(re.compile(r"^\d+ % of the rows are exact, about \d+ s left")).wait_for()
    run.locator("label").click()
    page.get_by_text(re.compile("^Stopped: ")).wait_for()


def test_files_bad_and_good(open_page):
    page = open_page("/map", map_source="own")
    upload = page.locator('input[type="file"]')
    upload.set_input_files({"name": "q.npz", "mimeType": "", "buffer": b"not an archive"})
    page.get_by_text("“q.npz” cannot be read as .npz").wait_for()
    page.get_by_role("button", name="Remove q.npz").click()
    # Two heads; in the second one the very last query attends to the very last key.
    q = np.zeros((2, 1000, 4), np.float32)
    k = np.zeros((1, 1000, 4), np.float32)
    q[1, 999, 2] = k[0, 999, 2] = 5
    buffer = io.BytesIO()
    np.savez(buffer, q=q, k=k)
    upload.set_input_files({"name": "mine.npz", "mimeType": "", "buffer": buffer.getvalue()})
    page.locator('[data-testid="map"][data-painted]').wait_for()
    page.get_by_role("button", name="Head 2").click()
    page.wait_for_url(re.compile("head=1"))
    page.get_by_text("One tile is 3 × 3 weights").wait_for()
    # 1,000 = 333 · 3 + 1: the last tile is thinner than a pixel, and still seen.
    colours = (
        page.get_by_test_id("map-stage")
        .locator("canvas")
        .evaluate(
            """(canvas) => [6, 1].map((back) => [...canvas.getContext("2d")
          .getImageData(62 + 497 - back, 26 + 497 - back, 1, 1).data].join())"""
        )
    )
    page.get_by_role("textbox", name="query i").fill("999")
    page.get_by_role("textbox", name="key j").fill("999")
    page.get_by_role("button", name="Go there").click()
    until(page, "cell", "^999,999$")
    share = np.exp(25 / 2)
    assert float(facts(page)["value"]) == pytest.approx(share / (share + 999), rel=1e-6)
    assert colours[0] != colours[1]


def test_two_fingers_zoom_and_one_drags(open_map):
    page = open_map(map_source="sink", phone=True)
    touch = page.context.new_cdp_session(page)
    x, y = place(page, 255, 255)

    def fingers(kind, *points):
        touch.send(
            "Input.dispatchTouchEvent",
            {"type": kind, "touchPoints": [{"x": a, "y": b} for a, b in points]},
        )

    fingers("touchStart", (x - 20, y), (x + 20, y))
    for apart in (30, 40, 60, 80):
        fingers("touchMove", (x - apart, y), (x + apart, y))
    fingers("touchEnd")
    until(page, "view", r",1\d\d,1\d\d$")
    top, left, rows, _cols = numbers(facts(page)["view"])
    fingers("touchStart", (x, y))
    for moved in (10, 30, 60):
        fingers("touchMove", (x, y + moved))
    fingers("touchEnd")
    until(page, "view", f"^(?!{top},)")
    moved = numbers(facts(page)["view"])
    assert moved[0] < top
    assert abs(moved[1] - left) <= 1
    assert abs(moved[2] - rows) <= 1
