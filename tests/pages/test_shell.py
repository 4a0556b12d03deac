"""The shell without a browser: language, menu, and each page in both languages."""

import pytest
from streamlit.testing.v1 import AppTest

from parts.frame import PAGES

NAMES = [name for group in PAGES.values() for name, _title, _icon in group]


def language(app) -> str:
    return app.session_state["language"]


def title(app) -> str:
    return app.title[0].value


def test_the_page_speaks_the_language_of_the_address(app_test):
    assert (language(app_test("heads")), title(app_test("heads"))) == ("en", "Heads")
    chinese = app_test("heads", lang="zh")
    assert (language(chinese), title(chinese)) == ("zh", "多头")


def test_a_click_on_the_other_language_is_written_to_the_address(app_test):
    app = app_test("heads")
    app.button_group(key="language").set_value("zh").run()
    assert app.query_params["lang"] == "zh"
    assert title(app) == "多头"


def test_the_browsers_language_stays_out_of_the_address(root):
    app = AppTest.from_file(str(root / "pages/shell.py"), default_timeout=60)
    app.context = {"locale": "zh-CN"}
    app.switch_page("heads.py")
    app.run()
    assert title(app) == "多头"
    assert "lang" not in app.query_params


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", NAMES)
def test_every_page_opens(app_test, root, name, lang):
    if not (root / f"pages/{name}.py").exists():
        pytest.skip("not built yet")
    app = app_test(name, lang=lang)
    assert app.title or app.header or app.main.markdown


@pytest.mark.parametrize(
    ("page", "link", "said"),
    [
        ("masks", {"masks_seed": -5}, "masks_seed = -5 in the link is not possible here: 0"),
        ("masks", {"masks_seed": "<b>x"}, "masks_seed = <b>x in the link"),
        ("softmax", {"softmax_temperature": 900}, "softmax_temperature = 900"),
        ("translator", {"word": 99}, "word = 99 in the link is not possible here: 6 is shown"),
    ],
)
def test_a_number_of_the_link_that_is_not_possible_is_named_once(app_test, page, link, said):
    app = app_test(page, **link)
    assert said in app.toast[0].value.replace("\\", "")
    app.run()
    assert not app.toast


@pytest.mark.parametrize(
    ("page", "link"),
    [("masks", {"masks_seed": 7}), ("masks", {"masks_seed": 0}), ("translator", {"word": 2})],
)
def test_a_possible_number_is_taken_without_a_word(app_test, page, link):
    app = app_test(page, **link)
    assert not app.toast
    app.switch_page("masks.py").run()
    assert not app.toast
