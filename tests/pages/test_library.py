"""The library page without a browser: what it sends, keeps, refuses and puts into the link."""

import json

import numpy as np
import pytest

from core.experiments.library import Book, Shelf, Topic, look
from parts.microscope import unpack


def opening(root, lang="en") -> tuple[str, Shelf]:
    plain = json.loads((root / f"assets/library/{lang}.json").read_text("utf-8"))
    topics = tuple(Topic(*row) for row in plain["topics"])
    return plain["question"], Shelf(topics, tuple(Book(*row) for row in plain["books"]))


def shown(app, symbol: str) -> np.ndarray:
    """The numbers of a step as the browser would read them."""
    found = [e for e in app.get("bidi_component") if e.proto.component_name == "qkv_microscope"]
    header, values = unpack(found[0].proto.bytes)
    step = next(s for s in header["manifest"]["steps"] if s["symbol"] == symbol)
    start, size = step["tensor"]["offset"], int(np.prod(step["shape"]))
    return values[start : start + size].reshape(step["shape"])


def text(app) -> str:
    return "\n".join(str(element.value) for element in (*app.markdown, *app.caption))


def tables(app) -> str:
    return "\n".join(element.proto.body for element in app.get("html"))


def change(app):
    """Open the form of the shelf."""
    app.session_state["library_change"] = True
    return app.run()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_opens_with_the_numbers_of_the_engine(app_test, root, lang):
    app = app_test("library", lang=lang)
    question, shelf = opening(root, lang)
    found = look(shelf, question)
    for symbol in ("Q", "K", "V", "scores", "weights", "output"):
        assert np.array_equal(shown(app, symbol), found.trace[symbol].numpy()), symbol
    assert app.text_input(key="library_question").value == question
    assert not {"question", "shelf", "temperature"} & set(app.query_params)


def test_both_languages_have_the_same_numbers(app_test):
    english, chinese = app_test("library"), app_test("library", lang="zh")
    for symbol in ("Q", "K", "V", "weights"):
        assert np.array_equal(shown(english, symbol), shown(chinese, symbol)), symbol


def test_a_question_and_a_temperature_change_shares_and_link(app_test, root):
    app = app_test("library")
    app.text_input(key="library_question").set_value("bread and soup").run()
    app.select_slider(key="library_temperature").set_value(0.01).run()
    assert not app.exception
    assert shown(app, "weights")[0].argmax() == 4
    assert shown(app, "weights")[0, 4] == pytest.approx(1)
    link = {name: app.query_params[name] for name in ("question", "temperature")}
    again = app_test("library", **link)
    assert np.array_equal(shown(again, "weights"), shown(app, "weights"))
    assert np.array_equal(
        shown(app, "weights"), look(opening(root)[1], "bread and soup", 0.01).trace["weights"]
    )


def test_the_act_follows_the_link_and_moves_the_microscope(app_test):
    app = app_test("library", step="V")
    assert app.session_state["library_act"] == "read"
    assert 'data-table="read"' in tables(app)
    app.segmented_control(key="library_act").set_value("share").run()
    assert 'data-table="share"' in tables(app)
    assert app.query_params["step"] == "weights"


def test_a_book_is_added_changed_and_removed(app_test, root):
    app = change(app_test("library"))
    app.selectbox(key="library_books").set_value(-1).run()
    app.text_input(key="library_books_title_-1_en").set_value("<b>Sails</b> *x*")
    app.text_input(key="library_books_card_-1_en").set_value("ship, island, stars, night")
    app.text_area(key="library_books_contents_-1_en").set_value("a ship").run()
    app.button(key="library_save_books").click().run()
    assert not app.exception
    assert shown(app, "K").shape == (11, 8)
    assert shown(app, "weights")[0].argmax() == 10
    assert "<b>Sails" not in tables(app)
    assert "&lt;b&gt;Sails" in tables(app)
    assert "<b>" not in text(app).replace("\\<", "")
    shelf = app.query_params["shelf"]
    assert Shelf.from_link(shelf).books[10].contents == "a ship"
    assert np.array_equal(shown(app_test("library", shelf=shelf), "K"), shown(app, "K"))
    assert app.selectbox(key="library_books").value == 10
    app.text_input(key="library_books_card_10_en").set_value("bread").run()
    app.button(key="library_save_books").click().run()
    assert shown(app, "scores")[0, 10] == 0
    app.button(key="library_remove_books").click().run()
    assert shown(app, "K").shape == (10, 8)
    assert "shelf" not in app.query_params  # as at first
    app.button(key="library_remove_books").click().run()
    assert shown(app, "K").shape == (9, 8)
    app.button(key="library_restore").click().run()
    assert shown(app, "K").shape == (10, 8)


def test_a_topic_makes_new_words_count(app_test):
    app = app_test("library", question="football")
    assert app.warning
    change(app)
    app.selectbox(key="library_topics").set_value(-1).run()
    app.text_input(key="library_topics_topic_-1_en").set_value("sport")
    app.text_area(key="library_topics_words_-1_en").set_value("football, goal").run()
    app.button(key="library_save_topics").click().run()
    assert not app.warning
    assert shown(app, "Q").tolist() == [[0.0] * 8 + [1.0]]


@pytest.mark.parametrize(("lang", "said"), [("en", "The title is empty"), ("zh", "书名是空的")])
def test_a_book_without_a_title_is_refused_and_nothing_is_lost(app_test, lang, said):
    app = change(app_test("library", lang=lang))
    title, card = (f"library_books_{name}_0_{lang}" for name in ("title", "card"))
    app.text_input(key=card).set_value("typed")
    app.text_input(key=title).set_value("  ").run()
    app.button(key="library_save_books").click().run()
    assert said in app.error[0].value
    assert app.text_input(key=card).value == "typed"
    assert shown(app, "K").shape == (10, 8)
    assert "shelf" not in app.query_params


def test_the_lying_book_is_named_and_can_be_made_honest(app_test):
    app = app_test("library")
    assert "“Under the Stars” has a card that fits its contents with cosine 0" in text(app)
    before = shown(app, "weights")[0, 9]
    app.button(key="library_honest").click().run()
    assert shown(app, "scores")[0, 9] == 0
    assert shown(app, "weights")[0, 9] < before / 10
    assert "All cards are honest enough" in text(app)


@pytest.mark.parametrize(
    "query",
    [
        {"shelf": "%%%"},
        {"shelf": "AAAA"},
        {"temperature": "nan"},
        {"step": "nothing"},
        {"question": "x" * 5000},
        {"question": "<img src=x> **b** $x$"},
    ],
)
def test_a_broken_link_still_opens(app_test, query):
    app = app_test("library", **query)
    assert shown(app, "K").shape == (10, 8)
    assert bool(app.error) == ("shelf" in query)
    assert "<img" not in text(app).replace("\\<", "")


def test_the_language_switches_an_untouched_shelf_and_keeps_ones_own(app_test):
    app = app_test("library")
    app.text_input(key="library_question").set_value("bread").run()
    app.query_params["lang"] = "zh"
    app.run()
    assert app.text_input(key="library_question").value == "bread"
    assert "抬头看" in tables(app)
