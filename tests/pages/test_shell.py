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
        ("masks", {"masks_seed": "1e400"}, "masks_seed = 1e400 in the link is not possible here"),
        ("roles", {"roles_seed": "-inf"}, "roles_seed = -inf in the link is not possible here: 0"),
        ("softmax", {"softmax_temperature": 900}, "softmax_temperature = 900"),
        ("translator", {"word": 99}, "word = 99 in the link is not possible here: 6 is shown"),
        ("map", {"map_pool": "median"}, "map_pool = median in the link is not possible here: "),
        ("masks", {"masks_kinds": "causal,odd"}, "masks_kinds = causal,odd in the link is not pos"),
        ("cost", {"cost_vary": "é" * 99}, f"cost_vary = {'é' * 40} in the link is not possible"),
        ("step_through", {"step": "Z"}, "step = Z in the link is not possible here: X is shown"),
        ("step_through", {"at": "Q:9,9"}, "at = Q:9,9 in the link is not possible here: – is"),
        ("step_through", {"head": 3, "h": 2}, "head = 3 in the link is not possible here: 1 is"),
        ("step_through", {"view": "odd"}, "view = odd in the link is not possible here: values"),
        ("sources", {"sample": "one"}, "sample = one in the link is not possible here: 0 is"),
    ],
)
def test_what_the_link_asks_and_cannot_have_is_named_once(app_test, page, link, said):
    app = app_test(page, **link)
    assert said in app.toast[0].value.replace("\\", "")
    app.run()
    assert not app.toast


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ({"S": "1e400"}, "S = 1e400 in the link cannot be read"),
        ({"dtype": "float16", "gain": "1e5"}, "gain is 100000.0, which float16 cannot hold"),
    ],
)
def test_a_number_too_large_is_named_where_the_sizes_are(app_test, link, said):
    app = app_test("step_through", **link)
    assert app.error[0].value.replace("\\", "").startswith(said)


@pytest.mark.parametrize(
    ("page", "link"),
    [
        ("masks", {"masks_seed": 7, "masks_kinds": "causal,padding"}),
        ("masks", {"masks_seed": 0}),
        ("translator", {"word": 2, "place": "cross"}),
        ("map", {"map_pool": "mean", "map_scale": "log"}),
        ("step_through", {"step": "Q", "at": "Q:1,2", "head": 1, "view": "values",
                          "sample": 0, "S": 4, "H": 6, "h": 2}),
    ],
)  # fmt: skip
def test_what_is_possible_is_taken_without_a_word(app_test, page, link):
    app = app_test(page, **link)
    assert not app.toast
    app.switch_page("masks.py").run()
    assert not app.toast
