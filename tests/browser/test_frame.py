"""The frame around the pages, in a real browser on a real server."""

import re
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
import streamlit
from playwright.sync_api import expect

HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
}


def test_a_deep_link_right_after_a_start_keeps_the_frame(open_page, fresh_server):
    """The old pages/ discovery of Streamlit skips the frame here."""
    page = open_page("/heads", base=fresh_server)
    assert page.get_by_role("heading", level=1).inner_text() == "Heads"
    page.get_by_role("button", name="Attention, step by step").click()
    assert page.get_by_role("menuitem", name="Step through").is_visible()
    assert page.title() == "Heads · QKV Microscope"


@pytest.mark.parametrize("path", ["/", "/heads", "/assets/frame/frame.js", "/health", "/nowhere"])
def test_security_headers_are_on_every_answer(server, path):
    with urlopen(server + path) as answer:
        headers = {name.lower(): value for name, value in answer.headers.items()}
    assert headers.items() >= HEADERS.items()
    policy = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in policy["script-src"]


def test_assets_are_asked_about_each_time_and_sent_once(server):
    url = f"{server}/assets/frame/frame.js"
    with urlopen(url) as answer:
        assert answer.headers["cache-control"] == "no-cache"
        assert answer.headers["content-type"].startswith(("text/javascript", "application/java"))
        tag = answer.headers["etag"]
    with pytest.raises(OSError, match="304"):
        urlopen(Request(url, headers={"If-None-Match": tag}))


@pytest.mark.parametrize("path", ["/", "/heads"])
def test_the_document_comes_with_its_style(server, path):
    """Later would mean a page that jumps under the reader's eyes."""
    asked = Request(server + path, headers={"Accept": "text/html", "Accept-Encoding": "gzip"})
    with urlopen(asked) as answer:
        body = answer.read()
        assert len(body) == int(answer.headers["content-length"])
    assert body.count(b'href="./assets/frame/frame.css"') == 1
    assert body.rstrip().endswith(b"</html>")


def test_streamlits_files_come_whole_from_memory_too(server):
    """The second answer is kept from the first; a part, or one that is there already, is not."""
    with urlopen(server) as answer:
        name = re.search(r"static/js/index\.[\w-]+\.js", answer.read().decode()).group()
    url = f"{server}/{name}"
    file = Path(streamlit.__file__).parent / "static" / name
    for _visit in range(3):
        with urlopen(url) as answer:
            assert answer.read() == file.read_bytes()
            assert "immutable" in answer.headers["cache-control"]
            assert answer.headers["x-content-type-options"] == "nosniff"
            tag = answer.headers["etag"]
    with urlopen(Request(url, headers={"Range": "bytes=0-9"})) as answer:
        assert answer.read() == file.read_bytes()[:10]
    with pytest.raises(OSError, match="304"):
        urlopen(Request(url, headers={"If-None-Match": tag}))


def test_the_health_check_answers(server):
    with urlopen(f"{server}/health") as answer:
        assert (answer.status, answer.read()) == (200, b"ok")


@pytest.mark.parametrize(
    ("locale", "lang", "heads"),
    [("en-GB", "en", "Heads"), ("zh-CN", "zh-CN", "多头"), ("fr-FR", "en", "Heads")],
)
def test_the_first_language_is_the_browsers(open_page, locale, lang, heads):
    page = open_page("/heads", locale=locale)
    assert page.get_by_role("heading", level=1).inner_text() == heads
    expect(page.locator("html")).to_have_attribute("lang", lang)


def test_a_change_of_language_keeps_the_state_in_the_address(open_page, settled):
    page = open_page("/", S=7, seed=3)
    page.get_by_role("radio", name="简体中文").click()
    page.wait_for_url(re.compile("lang=zh"))
    settled(page)
    assert page.get_by_role("button", name="逐步看注意力").is_visible()
    query = page.url.partition("?")[2].split("&")
    assert {"S=7", "seed=3", "lang=zh"} <= set(query)


def test_the_language_outlives_a_change_of_page(open_page, settled):
    page = open_page("/", lang="zh")
    page.get_by_role("button", name="逐步看注意力").click()
    page.get_by_role("menuitem", name="多头").click()
    page.wait_for_url(re.compile("/heads"))
    settled(page)
    assert page.get_by_role("heading", level=1).inner_text() == "多头"
    assert "lang=zh" in page.url


def test_an_unknown_language_in_the_address_gives_way(open_page):
    page = open_page("/heads", lang="tlh", locale="zh-CN")
    assert page.get_by_role("heading", level=1).inner_text() == "多头"
    assert "tlh" not in page.url


def test_on_a_phone_the_menu_folds_away_after_a_choice(open_page, settled):
    page = open_page("/", phone=True)
    page.get_by_test_id("stExpandSidebarButton").click()
    link = page.get_by_role("link", name="Heads")
    link.click()
    page.wait_for_url(re.compile("/heads"))
    settled(page)
    expect(link).not_to_be_in_viewport()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_frame_has_no_serious_violation(open_page, no_serious_violations, dark):
    page = open_page("/heads", dark=dark)
    no_serious_violations(page)
    page.get_by_role("button", name="Attention, step by step").click()
    page.get_by_role("menuitem", name="Step through").wait_for()
    no_serious_violations(page)


def test_the_menu_on_a_phone_has_no_serious_violation(open_page, no_serious_violations):
    page = open_page("/heads", phone=True)
    page.get_by_test_id("stExpandSidebarButton").click()
    page.get_by_role("link", name="Step through").wait_for()
    no_serious_violations(page)


def test_the_menu_opens_by_keyboard(open_page, settled):
    page = open_page("/")
    page.get_by_role("button", name="Attention, step by step").focus()
    page.keyboard.press("Enter")
    page.get_by_role("menuitem", name="Step through").wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/(heads)?$"))


def test_the_way_back_leads_to_the_page_before(open_page):
    page = open_page("/heads")
    page.goto(page.url.replace("/heads", "/"))
    expect(page.get_by_test_id("microscope")).to_have_attribute("data-step", "0")
    before = page.evaluate("history.length")
    for symbol in ("W_Q", "Q", "W_K"):
        page.keyboard.press("ArrowRight")
        expect(page).to_have_url(re.compile(rf"step={symbol}(&|$)"))
    assert page.evaluate("history.length") == before
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Heads")
