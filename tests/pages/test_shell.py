"""The shell without a browser: language, menu, and each page in both languages."""

import pytest

from parts.frame import PAGES

NAMES = [name for group in PAGES.values() for name, _title, _icon in group]


def links(app) -> list[str]:
    return [element.proto.label for element in app.get("page_link")]


def captions(app) -> list[str]:
    return [caption.value for caption in app.sidebar.caption]


def test_the_menu_speaks_the_chosen_language(app_test):
    english, chinese = app_test(), app_test(lang="zh")
    assert (captions(english)[0], links(english)[0]) == ("Attention, step by step", "Step through")
    assert (captions(chinese)[0], links(chinese)[0]) == ("逐步看注意力", "逐步计算")


def test_a_click_on_the_other_language_is_written_to_the_address(app_test):
    app = app_test()
    app.button_group(key="language").set_value("zh").run()
    assert app.query_params["lang"] == "zh"
    assert links(app)[0] == "逐步计算"


def test_the_browsers_language_stays_out_of_the_address(app_test, root):
    from streamlit.testing.v1 import AppTest

    app = AppTest.from_file(str(root / "pages/shell.py"), default_timeout=60)
    app.context = {"locale": "zh-CN"}
    app.run()
    assert links(app)[0] == "逐步计算"
    assert "lang" not in app.query_params


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", NAMES)
def test_every_page_opens(app_test, root, name, lang):
    if not (root / f"pages/{name}.py").exists():
        pytest.skip("not built yet")
    app = app_test(name, lang=lang)
    assert app.title or app.header or app.main.markdown
