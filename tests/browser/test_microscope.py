"""The microscope in a browser, on a bare page: keys, cells, arithmetic, colours, labels."""

import json
import math
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

import core
from core.manifest import manifest
from core.numbers import write
from parts import microscope

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = '<img src=x onerror="window.broken = true">'
TOKENS = ["the", "cat", "sat", "on", "the", HOSTILE]


def turned() -> core.Trace:
    """Queries and keys with a norm, then four of their six columns turned, neighbours together."""
    made = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(3, 6, generator=made) for _ in range(3))
    turns = torch.arange(3.0)[:, None] * torch.tensor([1.0, 1.0, 0.1, 0.1])
    norm = torch.full((6,), 1.5), torch.linspace(-1, 2, 6)
    return core.attend(q, k, v, rotary=(turns.cos(), turns.sin()), pairs="interleaved", norm=norm)


def halves() -> core.Trace:
    turns = torch.arange(3.0)[:, None] * torch.tensor([1.0, 0.1, 1.0, 0.1])
    x = torch.linspace(-1, 1, 12).reshape(3, 4)
    return core.attend(x, x, x, rotary=(turns.cos(), turns.sin()))


TRACES = {
    "turned": turned(),
    "halves": halves(),
    "example": core.run(core.AttentionConfig(S=4, H=6, d_k=3)),
    "heads": core.run(core.AttentionConfig(S=4, H=12, h=2, causal=True)),
    "groups": core.run(core.AttentionConfig(B=2, S=5, H=8, h=4, g=2, softcap=5.0)),
    "tokens": core.run(core.AttentionConfig(S=6, H=8)),
    "pictures": core.run(core.AttentionConfig(S=64, H=32, causal=True)),
    "large": core.run(core.AttentionConfig(S=64, H=512, h=8)),
}
LABELS = {"tokens": {"S": TOKENS}, "pictures": {"S": [f"w{i}" for i in range(64)]}}


def by_hand() -> tuple[dict, np.ndarray]:
    """One tensor with every odd number there is, and one whose cells are strings."""
    odd = [1.5, -math.inf, math.nan, math.inf, 1.5e-7, -0.25, 123456.0, 0.0]
    values = np.array(odd, np.float32)
    common = {"dims": ["S", "H"], "shape": [2, 4], "reads": [], "stage": "input", "cost": {}}
    common |= {"op": {"kind": "given"}, "tensor": {"offset": 0, "strides": [4, 1]}}
    common |= {"range": {"kind": "signed", "max": 2.0}}
    strings = [["0,0", "0,1", "0,2", "0,3"], ["1,0", "1,1", "1,2", "1,3"]]
    steps = [{**common, "symbol": "X"}, {**common, "symbol": "Y", "display": strings}]
    return {"mode": "values", "dims": {}, "labels": {}, "pick": {}, "steps": steps}, values


def gradient() -> tuple[dict, np.ndarray]:
    trace, target = TRACES["example"], ("output", (0, 1))
    return manifest(trace, values=trace.gradient(*target), target=target)


def payload(name: str) -> bytes:
    """What Python would send. "heads~5@2": forced to step 5 by epoch 2; "large.3": head 3.

    Step 7 comes with a cell.
    """
    name, _, forced = name.partition("~")
    step, _, epoch = forced.partition("@")
    name, _, head = name.partition(".")
    if name in ("by_hand", "gradient"):
        described, values = {"by_hand": by_hand, "gradient": gradient}[name]()
    else:
        pick = {"h": int(head or 0)}
        described, values = manifest(TRACES[name], pick, labels=LABELS.get(name))
    place = {"step": int(step or 0), "epoch": int(epoch or 1)}
    if place["step"] == 7:
        place["cell"] = {"symbol": "scores", "index": [1, 2]}
    return microscope.pack(described, values, text=microscope.words(), key="m", **place)


class Handler(SimpleHTTPRequestHandler):
    def do_GET(self):
        if not self.path.startswith("/payload/"):
            return super().do_GET()
        body = payload(self.path.removeprefix("/payload/"))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def bench():
    """Address of a server of the repository's files and of the payloads."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), lambda *a: Handler(*a, directory=str(ROOT)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


class Scope:
    """An opened microscope."""

    def __init__(self, page):
        self.page, self.root = page, page.get_by_test_id("microscope")
        self.arithmetic = page.get_by_test_id("arithmetic")

    def press(self, key, times=1):
        for _ in range(times):
            self.page.keyboard.press(key)
        return self

    def go(self, symbol):
        self.page.locator(f'[data-chip="{symbol}"]').click()
        expect(self.root).to_have_attribute("data-symbol", symbol)
        return self

    def matrix(self, symbol):
        return self.page.locator(f'[data-matrix="{symbol}"]').last

    def cell(self, symbol, row, col):
        return self.matrix(symbol).locator(f'[data-cell="{row},{col}"]')

    def values(self, symbol):
        """All numbers of a matrix as its cells hold them, (rows, cols)."""
        cells = self.matrix(symbol).locator("[data-cell]")
        found = cells.evaluate_all("cells => cells.map((cell) => cell.dataset.value)")
        rows = int(self.matrix(symbol).get_attribute("data-rows"))
        return np.array(found, np.float64).reshape(rows, -1)

    def sent(self, name):
        """What was sent to Python under a name, once the debounce is over."""
        self.page.wait_for_timeout(250)
        return [value for sent, value in self.page.evaluate("window.sent") if sent == name]

    @property
    def step(self):
        return int(self.root.get_attribute("data-step"))

    def show(self, name):
        self.page.evaluate("(name) => window.show(name)", name)
        return self


@pytest.fixture
def scope(new_context, bench):
    errors = []

    def opened(name="example", *, theme="light", width=1280, motion="reduce"):
        context = new_context(viewport={"width": width, "height": 800}, reduced_motion=motion)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        harness = f"{bench}/tests/browser/microscope_harness.html"
        page.goto(f"{harness}?payload={name}&theme={theme}")
        page.wait_for_selector("[data-ready]")
        return Scope(page)

    yield opened
    assert not errors


# ── Keys ──────────────────────────────────────────────────────────────────────────────────────────


def test_twenty_presses_are_twenty_steps(scope):
    opened = scope("groups").press("ArrowRight", 20)
    assert opened.step == 20
    assert opened.root.get_attribute("data-symbol") == TRACES["groups"].steps[20].symbol
    assert opened.sent("step")[-1] == 20


def test_presses_in_a_row_are_reported_once(scope):
    opened = scope("groups")
    opened.page.evaluate(
        """() => {
            const press = () => new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true });
            for (let i = 0; i < 20; i += 1) document.body.dispatchEvent(press());
        }"""
    )
    assert opened.step == 20
    assert opened.sent("step") == [20]


def test_keys_stay_at_the_ends(scope):
    opened = scope().press("ArrowLeft")
    assert opened.step == 0
    last = len(TRACES["example"].steps) - 1
    assert opened.press("End").step == last == opened.press("ArrowRight").step
    assert opened.root.get_attribute("data-steps") == str(last + 1)
    assert opened.press("Home").step == 0


FIELDS = {
    "input": '<input class="probe" value="abc">',
    "textarea": '<textarea class="probe">abc</textarea>',
    "select": '<select class="probe"><option>a<option>b</select>',
    "range": '<input class="probe" type="range">',
    "editable": '<p class="probe" contenteditable="true">abc</p>',
    "slider": '<div class="probe" role="slider" tabindex="0">3</div>',
    "tab": '<div role="tablist"><button class="probe" role="tab">a</button></div>',
    "data editor": '<p data-testid="stDataFrame"><canvas class="probe" tabindex="0"></canvas></p>',
}


@pytest.mark.parametrize("kind", FIELDS)
@pytest.mark.parametrize("shadow", [False, True], ids=["page", "other shadow root"])
def test_fields_keep_their_keys(scope, kind, shadow):
    opened = scope().press("ArrowRight")
    opened.page.evaluate(
        """([markup, shadow]) => {
            const holder = document.body.appendChild(document.createElement("div"));
            const into = shadow ? holder.attachShadow({ mode: "open" }) : holder;
            into.innerHTML = markup;
            into.querySelector(".probe").focus();
        }""",
        [FIELDS[kind], shadow],
    )
    for key in ("ArrowRight", "ArrowLeft", "End", "Home", "Space"):
        opened.press(key)
        assert opened.step == 1, key
    expect(opened.root.get_by_role("button", name="Play")).to_be_visible()


def test_space_plays_and_a_step_by_hand_stops(scope):
    opened = scope()
    opened.page.clock.install()
    opened.press("Space")
    opened.page.clock.run_for(3200)
    assert opened.step == 2
    opened.press("ArrowRight")
    opened.page.clock.run_for(5000)
    assert opened.step == 3


def test_space_presses_the_button_that_has_the_focus(scope):
    opened = scope()
    opened.root.get_by_role("button", name="Next step").focus()
    assert opened.press("Space").step == 1
    expect(opened.root.get_by_role("button", name="Play")).to_be_visible()


def test_arrows_walk_within_a_focused_matrix_and_enter_pins(scope):
    opened = scope().go("Q")
    opened.cell("Q", 0, 0).focus()
    opened.press("ArrowRight").press("ArrowDown").press("ArrowDown").press("ArrowLeft", 3)
    expect(opened.cell("Q", 2, 0)).to_be_focused()
    assert opened.root.get_attribute("data-symbol") == "Q"
    expect(opened.arithmetic).to_contain_text("Q[2,0] = ")
    opened.press("End").press("Enter")
    expect(opened.cell("Q", 2, 2)).to_have_attribute("aria-selected", "true")
    assert opened.sent("cell") == [{"symbol": "Q", "index": [2, 2]}]
    opened.press("Escape")
    assert opened.sent("cell")[-1] is None
    expect(opened.cell("Q", 2, 2)).not_to_be_focused()
    assert opened.press("ArrowRight").root.get_attribute("data-symbol") == "W_K"


def test_one_cell_of_a_matrix_is_a_tab_stop(scope):
    opened = scope().go("Q")
    stops = opened.matrix("Q").locator('td[tabindex="0"]')
    expect(stops).to_have_count(1)
    opened.cell("Q", 3, 1).click()
    expect(stops).to_have_count(1)
    expect(stops).to_have_attribute("data-cell", "3,1")


def test_the_focused_cell_is_spoken(scope):
    opened = scope().go("scaled")
    opened.cell("scaled", 1, 1).focus()
    live = opened.root.locator('[aria-live="polite"]')
    expect(live).to_contain_text("scaled[1,1] = ")


# ── Numbers ───────────────────────────────────────────────────────────────────────────────────────


def test_clicks_in_a_row_are_reported_once(scope):
    opened = scope().go("Q")
    opened.matrix("Q").evaluate(
        """matrix => {
            for (const at of ["0,0", "1,1", "2,2"]) {
                const cell = matrix.querySelector(`[data-cell="${at}"]`);
                cell.dispatchEvent(new MouseEvent("click", { bubbles: true, composed: true }));
            }
        }"""
    )
    assert opened.sent("cell") == [{"symbol": "Q", "index": [2, 2]}]


def test_every_cell_of_every_step_holds_the_engines_number(scope):
    trace, opened = TRACES["example"], scope()
    for step in trace.steps:
        expect(opened.root).to_have_attribute("data-symbol", step.symbol)
        np.testing.assert_array_equal(opened.values(step.symbol), step.tensor.double().numpy())
        opened.press("ArrowRight")


def test_a_transposed_operand_is_drawn_transposed(scope):
    opened = scope().go("scores")
    expect(opened.matrix("K")).to_have_attribute("data-transposed", "true")
    expect(opened.matrix("K").locator(".title")).to_contain_text("KTd_k×S3×4")
    np.testing.assert_array_equal(opened.values("K"), TRACES["example"]["K"].T.double().numpy())
    np.testing.assert_array_equal(opened.values("Q"), TRACES["example"]["Q"].double().numpy())


def test_heads_are_laid_out_where_a_step_moves_them(scope):
    opened, trace = scope("heads").go("Q_heads"), TRACES["heads"]
    np.testing.assert_array_equal(
        opened.values("Q_split"), trace["Q_split"].reshape(4, 12).double().numpy()
    )
    np.testing.assert_array_equal(
        opened.values("Q_heads"), trace["Q_heads"].reshape(8, 6).double().numpy()
    )
    opened.cell("Q_heads", 5, 2).hover()
    expect(opened.arithmetic).to_contain_text("Q_heads[1,1,2] = Q_split[1,1,2] = ")
    expect(opened.arithmetic).to_contain_text("at the same place in memory")
    assert opened.matrix("Q_split").locator("td.from0").get_attribute("data-cell") == "1,8"
    opened.go("merged").cell("merged", 2, 7).hover()
    expect(opened.arithmetic).to_contain_text("copied")


SAME_AS_ENGINE = [
    ("example", "Q", (0, 1), (0, 1)),
    ("example", "scores", (3, 2), (3, 2)),
    ("example", "scaled", (1, 2), (1, 2)),
    ("example", "weights", (2, 0), (2, 0)),
    ("heads", "Q", (3, 11), (3, 11)),
    ("heads", "weights", (3, 1), (0, 3, 1)),
    ("heads", "output", (3, 2), (0, 3, 2)),
    ("groups", "K_repeat", (11, 1), (0, 2, 1, 1)),
    ("groups", "capped", (2, 2), (0, 0, 2, 2)),
    ("groups", "weights", (4, 4), (0, 0, 4, 4)),
    ("pictures", "output", (63, 5), (63, 5)),
    ("turned", "Q_normed", (1, 4), (1, 4)),
    ("turned", "K_normed", (2, 0), (2, 0)),
    ("turned", "Q_rotated", (1, 0), (1, 0)),
    ("turned", "K_rotated", (2, 3), (2, 3)),
    ("halves", "Q_rotated", (2, 1), (2, 1)),
    ("halves", "K_rotated", (2, 3), (2, 3)),
]


@pytest.mark.parametrize(("name", "symbol", "drawn", "index"), SAME_AS_ENGINE)
def test_arithmetic_is_the_engines(scope, name, symbol, drawn, index):
    opened = scope(name).go(symbol)
    reach(opened, symbol, drawn)
    expected = TRACES[name].explain(symbol, index).text
    shown = opened.arithmetic.locator(".line").text_content()
    place = ",".join(map(str, index))
    assert shown.replace(" ", "") == f"{symbol}[{place}]={expected}".replace(" ", "")


def reach(opened, symbol, drawn):
    """Hover a cell of a table, or the same place on a picture."""
    picture = opened.matrix(symbol).locator("canvas")
    if not picture.count():
        return opened.cell(symbol, *drawn).hover()
    box, rows = picture.bounding_box(), int(opened.matrix(symbol).get_attribute("data-rows"))
    each = box["height"] / rows
    at = {"x": (drawn[1] + 0.5) * each, "y": (drawn[0] + 0.5) * each}
    return picture.hover(position=at)


def test_sources_light_up(scope):
    opened = scope().go("scores")
    opened.cell("scores", 1, 2).hover()
    lit = "cells => cells.map((cell) => cell.dataset.cell)"
    assert opened.matrix("Q").locator("td.from0").evaluate_all(lit) == ["1,0", "1,1", "1,2"]
    assert opened.matrix("K").locator("td.from1").evaluate_all(lit) == ["0,2", "1,2", "2,2"]
    opened.cell("K", 2, 1).hover()  # an operand: its own name and value, nothing lit
    expect(opened.arithmetic.locator(".line")).to_have_text(
        f"K[1,2] = {write(TRACES['example']['K'][1, 2])}"
    )
    assert opened.root.locator("td.from").count() == 0


def test_a_turned_number_lights_its_partner_and_both_angles(scope):
    opened = scope("turned").go("Q_rotated")
    opened.cell("Q_rotated", 1, 3).hover()
    lit = "cells => cells.map((cell) => cell.dataset.cell)"
    assert opened.matrix("Q_normed").locator("td.from0").evaluate_all(lit) == ["1,2", "1,3"]
    assert opened.matrix("cos").locator("td.from1").evaluate_all(lit) == ["1,3"]
    assert opened.matrix("sin").locator("td.from2").evaluate_all(lit) == ["1,3"]
    opened.cell("Q_rotated", 1, 5).hover()  # beyond the four that are turned
    expect(opened.arithmetic).to_contain_text("Q_rotated[1,5] = Q_normed[1,5] = ")


def test_what_the_mask_does(scope):
    opened = scope("heads").go("masked")
    closed = opened.cell("masked", 1, 2)
    assert closed.get_attribute("data-value") == "-Infinity"
    assert closed.text_content() == "−∞"
    assert "gradient" in closed.evaluate("cell => getComputedStyle(cell).backgroundImage")
    closed.hover()
    expect(opened.arithmetic).to_contain_text("masked[0,1,2] = −∞")
    expect(opened.arithmetic).to_contain_text("mask[1,2] = 0: may not attend")
    opened.cell("masked", 2, 1).hover()
    value = write(TRACES["heads"]["scaled"][0, 2, 1])
    expect(opened.arithmetic).to_contain_text(f"masked[0,2,1] = scaled[0,2,1] = {value}")


def test_odd_numbers_are_marked_and_kept_whole(scope):
    opened = scope("by_hand")
    cells = opened.matrix("X").locator("[data-cell]")
    assert cells.all_text_contents() == [
        "1.5", "−∞", "NaN", "∞", "1.5e−7", "−0.25", "1.235e5", "0"
    ]  # fmt: skip
    expected = by_hand()[1].astype(np.float64)
    np.testing.assert_array_equal(opened.values("X").ravel(), expected)
    assert "nan" in cells.nth(2).get_attribute("class")
    assert cells.nth(2).evaluate("c => c.style.backgroundColor") == "rgb(163, 18, 143)"


def test_strings_may_stand_for_the_numbers(scope):
    opened = scope("by_hand").go("Y")
    texts = opened.matrix("Y").locator("[data-cell]").all_text_contents()
    assert texts == ["0,0", "0,1", "0,2", "0,3", "1,0", "1,1", "1,2", "1,3"]
    assert opened.cell("Y", 1, 1).get_attribute("data-value") == "-0.25"


def test_gradient_mode_names_the_derivative(scope):
    opened = scope("gradient").go("Q")
    expected = TRACES["example"].gradient("output", (0, 1))["Q"].double().numpy()
    np.testing.assert_array_equal(opened.values("Q"), expected)
    opened.cell("Q", 0, 2).hover()
    expect(opened.arithmetic).to_have_text(f"∂output[0,1]/∂Q[0,2] = {write(expected[0, 2])}")


# ── Batch and head ────────────────────────────────────────────────────────────────────────────────


def test_another_head_and_sample_are_at_hand(scope):
    opened, trace = scope("groups").go("scores"), TRACES["groups"]
    np.testing.assert_array_equal(opened.values("scores"), trace["scores"][0, 0].double().numpy())
    opened.page.get_by_role("combobox", name="Head", exact=True).select_option("3")
    opened.page.get_by_role("combobox", name="Batch item", exact=True).select_option("1")
    np.testing.assert_array_equal(opened.values("scores"), trace["scores"][1, 3].double().numpy())
    assert opened.sent("pick") == [{"B": 0, "h": 3}, {"B": 1, "h": 3}]
    opened.go("V").cell("V", 0, 0).click()
    assert opened.sent("cell") == [{"symbol": "V", "index": [1, 0, 0]}]


def test_a_head_that_was_not_sent_is_asked_for(scope):
    opened = scope("large").go("scores")
    opened.page.get_by_role("combobox", name="Head", exact=True).select_option("5")
    assert opened.sent("pick") == [{"h": 5}]
    expect(opened.root).to_have_attribute("aria-busy", "true")
    opened.show("large.5")
    expect(opened.root).not_to_have_attribute("aria-busy", "true")
    reach(opened, "scores", (7, 9))
    value = TRACES["large"]["scores"][5, 7, 9]
    expect(opened.arithmetic.locator(".line")).to_contain_text("scores[5,7,9] = ")
    expect(opened.arithmetic.locator("strong")).to_have_text(write(value))


# ── Pictures ──────────────────────────────────────────────────────────────────────────────────────


def test_a_large_matrix_is_a_picture_with_numbers_on_hover(scope):
    opened, trace = scope("pictures").go("scores"), TRACES["pictures"]
    assert opened.matrix("scores").get_attribute("data-mode") == "heatmap"
    for row, col in ((0, 0), (40, 17), (63, 63)):
        reach(opened, "scores", (row, col))
        expect(opened.arithmetic).to_contain_text(f"scores[{row},{col}] = ")
        expect(opened.arithmetic.locator("strong")).to_have_text(write(trace["scores"][row, col]))
        expect(opened.arithmetic).to_contain_text(f"w{row} · w{col}")


def test_arrows_walk_on_a_picture(scope):
    opened, trace = scope("pictures").go("masked"), TRACES["pictures"]
    reach(opened, "masked", (30, 20))
    opened.matrix("masked").locator("canvas").click(position={"x": 1, "y": 1})
    opened.press("ArrowDown", 2).press("ArrowRight")
    cursor = opened.cell("masked", 2, 1)
    assert float(cursor.get_attribute("data-value")) == float(trace["masked"][2, 1])
    assert opened.press("ArrowRight", 2).cell("masked", 2, 3).get_attribute("data-value") == (
        "-Infinity"
    )


def test_a_picture_has_the_colours_of_its_numbers(scope):
    opened = scope("pictures").go("masked")
    pixels = (
        opened.matrix("masked")
        .locator("canvas")
        .evaluate(
            """canvas => [...canvas.getContext("2d")
            .getImageData(0, 0, canvas.width, canvas.height).data]"""
        )
    )
    pixels = np.array(pixels).reshape(64, 64, 4)
    values = TRACES["pictures"]["masked"].numpy()
    assert ((pixels[..., 3] == 0) == np.isneginf(values)).all()  # hatched ground shows through
    blue, red = pixels[..., 2].astype(int), pixels[..., 0].astype(int)
    strong = np.abs(np.where(np.isfinite(values), values, 0)) > 1
    assert ((blue > red) == (values > 0))[strong].all()


def test_blocks_of_a_huge_matrix_say_where_their_number_stands(scope):
    opened, trace = scope("large").go("W_Q"), TRACES["large"]
    assert opened.matrix("W_Q").get_attribute("data-mode") == "heatmap"
    opened.matrix("W_Q").locator("canvas").hover(position={"x": 60, "y": 60})
    name, value = opened.arithmetic.locator(".line").text_content().split(" = ")
    index = tuple(map(int, name.removeprefix("W_Q[").removesuffix("]").split(",")))
    assert write(trace["W_Q"][index]) == value
    opened.matrix("W_Q").locator("canvas").click(position={"x": 60, "y": 60})
    label = opened.matrix("W_Q").locator(".cursor").get_attribute("aria-label")
    head, column = divmod(index[1], 64)
    assert label == f"H {index[0] + 1} · h {head + 1} · d_k {column + 1}: {value}"
    assert opened.sent("cell") == [{"symbol": "W_Q", "index": list(index)}]


# ── Data ──────────────────────────────────────────────────────────────────────────────────────────


def test_drawing_again_changes_nothing(scope):
    opened = scope().go("Q")
    opened.cell("Q", 1, 1).focus()
    opened.page.evaluate("window.redraw(); window.redraw(); window.redraw()")
    expect(opened.root).to_have_count(1)
    expect(opened.cell("Q", 1, 1)).to_be_focused()
    opened.press("Escape")
    assert opened.press("ArrowRight").step == 3
    opened.page.evaluate("window.dispose(); window.redraw()")
    expect(opened.root).to_have_count(1)
    assert opened.step == 3  # where the reader was
    assert opened.press("ArrowRight").step == 4


def test_new_data_keep_the_readers_step_by_its_symbol(scope):
    opened = scope("example~0@1").go("weights")
    opened.sent("step")
    opened.show("heads~0@1")
    expect(opened.root).to_have_attribute("data-symbol", "weights")
    place = [s.symbol for s in TRACES["heads"].steps].index("weights")
    assert opened.step == place
    assert opened.sent("step")[-1] == place


def test_a_new_epoch_moves_the_reader(scope):
    opened = scope("example~0@1").press("ArrowRight", 3)
    opened.sent("step")
    opened.show("example~6@1")
    assert opened.step == 3
    opened.show("example~6@2")
    assert opened.step == 6
    assert opened.sent("step")[-1] == 6


def test_a_link_pins_its_cell(scope):
    opened = scope("example~7@1")
    expect(opened.cell("scores", 1, 2)).to_have_attribute("aria-selected", "true")
    expect(opened.arithmetic).to_contain_text("scores[1,2] = ")
    assert opened.sent("cell") == []  # Python knows


def test_a_pinned_cell_stays_with_its_symbol(scope):
    opened = scope().go("scores")
    opened.cell("scores", 2, 1).click()
    opened.press("Escape").go("scores")
    opened.cell("scores", 2, 1).click()
    opened.go("scaled")
    expect(opened.cell("scores", 2, 1)).to_have_class("pinned active")
    expect(opened.arithmetic).to_contain_text("scores[2,1] = ")
    opened.go("output")
    expect(opened.arithmetic).to_have_text(
        "Point at a number, or tap it, to see where it comes from."
    )


# ── Looks ─────────────────────────────────────────────────────────────────────────────────────────


def test_tokens_are_text_and_nothing_else(scope):
    opened = scope("tokens").go("weights")
    heads = opened.matrix("weights").locator('th[scope="row"]')
    assert heads.all_text_contents() == TOKENS
    assert heads.last.get_attribute("title") == HOSTILE
    opened.cell("weights", 5, 5).click()
    assert opened.root.locator("img").count() == 0
    assert opened.page.evaluate("window.broken") is None


@pytest.mark.parametrize(("motion", "moves"), [("no-preference", True), ("reduce", False)])
def test_heads_fly_to_their_place_unless_motion_is_unwelcome(scope, motion, moves):
    opened = scope("heads", motion=motion)
    counted = "r => { r.querySelector('[data-chip=Q_heads]').click();"
    counted += " return r.getAnimations({ subtree: true }).length }"
    flying = opened.page.locator(".microscope").evaluate(counted)
    assert (flying >= 48) if moves else flying == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_numbers_stand_out_from_their_colour(scope, theme):
    opened = scope("groups", theme=theme)
    worst = []
    for _ in TRACES["groups"].steps:
        worst.append(opened.page.locator(".microscope").evaluate(CONTRAST))
        opened.press("ArrowRight")
    assert min(worst) >= 4.5


CONTRAST = """root => {
    const light = (text) => {
        const [r, g, b] = text.match(/[\\d.]+/g).map(Number).map((c) =>
            c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
    };
    return Math.min(...[...root.querySelectorAll("td[data-cell]")].map((cell) => {
        const style = getComputedStyle(cell);
        const [a, b] = [light(style.color), light(style.backgroundColor)];
        return Math.max(a, b) / Math.min(a, b);
    }));
}"""


@pytest.mark.parametrize("name", ["heads", "pictures"])
def test_nothing_is_cut_on_a_phone(scope, name):
    opened = scope(name, width=390)
    for _ in TRACES[name].steps:
        wide = "() => document.documentElement.scrollWidth <= innerWidth"
        assert opened.page.evaluate(wide), opened.root.get_attribute("data-symbol")
        for box in opened.root.locator(".matrix").all():
            place = box.bounding_box()
            assert place["x"] >= 0
            assert place["x"] + place["width"] <= 390
        opened.press("ArrowRight")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("name", "symbol"), [("heads", "weights"), ("pictures", "scores")])
def test_axe_finds_nothing_serious(scope, no_serious_violations, theme, name, symbol):
    opened = scope(name, theme=theme).go(symbol)
    opened.cell(symbol, 0, 0).focus()
    no_serious_violations(opened.page)


def test_every_word_comes_from_python(scope):
    """No label is left empty or undefined."""
    opened = scope("groups").go("scores")
    names = opened.page.locator(".microscope").evaluate(
        """root => [root, ...root.querySelectorAll("[aria-label], .stage, label span, kbd, option")]
            .map((node) => node.getAttribute("aria-label") ?? node.textContent)"""
    )
    assert not [name for name in names if not name or "undefined" in name]
    assert json.dumps(names).count("{") == 0  # placeholders are filled in
