"""The step-through page in a browser: keys, clicks, edits, links, languages, phone and dark."""

import pytest
from playwright.sync_api import expect

import core


def step(page, symbol):
    """Wait until the microscope stands at a step."""
    here = page.get_by_test_id("microscope")
    expect(here).to_have_attribute("data-symbol", symbol, timeout=30_000)


def cell(page, symbol, at):
    return page.locator(f'[data-matrix="{symbol}"] [data-cell="{at}"]').first


@pytest.fixture
def page(page):
    """The default page, once its microscope stands."""
    step(page, "X")
    return page


def number(page, symbol, at):
    return float(cell(page, symbol, at).get_attribute("data-value"))


def test_steps_with_keys_and_everything_follows(page, settled):
    trace = core.run(core.preset("example"))
    for symbol in list(trace)[1:4]:
        page.keyboard.press("ArrowRight")
        step(page, symbol)
    page.keyboard.press("End")
    step(page, "output")
    settled(page)
    assert number(page, "output", "2,1") == pytest.approx(float(trace["output"][2, 1]), abs=0)
    expect(page.get_by_role("heading", name="output · (S = 4, d_v = 3)")).to_be_visible()
    expect(page.locator(".shapes tr[aria-current] th")).to_have_text("output")
    assert "step=output" in page.url


def test_a_click_brings_the_arithmetic_of_the_engine(page, settled):
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    step(page, "weights")
    cell(page, "weights", "1,3").click()
    text = core.run(core.preset("example")).explain("weights", (1, 3)).text
    settled(page)
    expect(page.locator("code", has_text=text)).to_be_visible()
    assert "at=weights" in page.url


def test_a_link_shows_the_same_numbers_and_step_in_another_browser(open_page, settled):
    first = open_page("/", S=3, H=4, h=2, causal=1, project=1, step="weights", head=1)
    step(first, "weights")
    shown = [number(first, "weights", f"{i},{j}") for i in range(3) for j in range(3)]
    second = open_page("/?" + first.url.partition("?")[2])
    step(second, "weights")
    assert [number(second, "weights", f"{i},{j}") for i in range(3) for j in range(3)] == shown
    config = core.AttentionConfig(S=3, H=4, h=2, causal=True, project=True)
    assert shown == core.run(config)["weights"][1].flatten().tolist()


def test_an_edited_number_reaches_every_later_step_and_can_be_undone(open_page, settled):
    page = open_page("/", x="example", d_k=3, gain="2.0", panel="edit", step="scores")
    before = number(page, "scores", "0,0")
    page.get_by_role("textbox", name="Paste 4 × 6").fill("\n".join(["1 0 0 0 0 0"] * 4))
    page.keyboard.press("Control+Enter")
    expect(cell(page, "scores", "0,0")).not_to_have_attribute("data-value", str(before))
    settled(page)
    assert number(page, "scores", "0,0") == number(page, "scores", "3,2")
    page.get_by_role("button", name="Undo").click()
    settled(page)
    expect(cell(page, "scores", "0,0")).to_have_attribute("data-value", str(before))


def test_a_block_of_the_wrong_size_is_refused_in_the_readers_language(open_page, settled):
    page = open_page("/", lang="zh", panel="edit")
    page.get_by_role("textbox", name="为 X 粘贴").fill("1 2 3")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert").filter(has_text="4 × 6")).to_be_visible()
    expect(page.get_by_role("textbox", name="为 X 粘贴")).to_have_value("1 2 3")


def test_language_switch_keeps_step_and_numbers(page, settled):
    page.keyboard.press("End")
    step(page, "output")
    settled(page)
    before = number(page, "output", "0,0")
    page.get_by_role("radio", name="简体中文").or_(page.get_by_text("简体中文")).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("逐步看注意力")
    settled(page)
    step(page, "output")
    assert number(page, "output", "0,0") == before


def test_gradient_view_derives_the_clicked_element(open_page, settled):
    page = open_page("/", S=3, H=4, view="gradient", at="output:1,2", step="weights")
    wanted = core.run(core.AttentionConfig(S=3, H=4)).gradient("output", (1, 2))["weights"]
    assert number(page, "weights", "1,0") == float(wanted[1, 0])


def test_downloads_are_what_is_shown(open_page, tmp_path):
    page = open_page("/", S=3, H=4, panel="share")
    with page.expect_download() as download:
        page.get_by_role("button", name="PyTorch script").click()
    names: dict = {}
    exec(download.value.path().read_text("utf-8"), names)
    assert names["output"].equal(core.run(core.AttentionConfig(S=3, H=4))["output"])
    with page.expect_download() as download:
        page.get_by_role("button", name="safetensors").click()
    download.value.save_as(tmp_path / "trace.safetensors")
    again = core.Trace.load(str(tmp_path / "trace.safetensors"))
    assert again["weights"].equal(core.run(core.AttentionConfig(S=3, H=4))["weights"])


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_reads_well_to_a_screen_reader(open_page, no_serious_violations, lang):
    page = open_page("/", lang=lang, dark=lang == "zh", h=2, H=6, causal=1, step="weights")
    no_serious_violations(page)


def test_nothing_is_wider_than_a_phone(open_page):
    page = open_page("/", phone=True, step="scores")
    step(page, "scores")
    wide = page.evaluate("document.scrollingElement.scrollWidth")
    assert wide <= 390
