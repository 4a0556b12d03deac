"""The translator's page, without a browser."""

import re

import pytest

from core.translator import Edits, load, studies
from parts.microscope import unpack
from parts.translator_training import CODE, percent

RIVER, MONEY = "the fisherman waits at the bank", "the banker waits at the bank"


def sent(app):
    found = [e for e in app.get("bidi_component") if e.proto.component_name == "qkv_microscope"]
    return unpack(found[0].proto.bytes)


def table(app, name):
    """The cells of one of the page's tables, row by row, names of rows included."""
    (markup,) = [e.proto.body for e in app.get("html") if f'data-table="{name}"' in e.proto.body]
    markup = markup.partition(f'data-table="{name}"')[2].partition("</table>")[0]
    return [
        re.findall(r"<t[hd][^>]*>(?:<code>)?(.*?)(?:</code>)?</t[hd]>", row)
        for row in markup.partition("<tbody>")[2].split("</tr>")[:-1]
    ]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_sentence_is_translated(app_test, lang):
    app = app_test("translator", lang=lang, english=MONEY)
    assert app.subheader[0].value == "银行家在银行等"
    assert [row[1:] for row in table(app, "target")] == [
        ["银行家", "在", "银行", "等", "&lt;end&gt;"]
    ]
    assert len(table(app, "cache")) == 5


def test_next_and_back_walk_through_the_words_and_the_cache_grows(app_test):
    app = app_test("translator", english=MONEY, word=1)
    assert app.subheader[0].value == "银行家"
    assert [row[3] for row in table(app, "cache")] == ["256"]
    app.button("word_next").click().run()
    assert app.subheader[0].value == "银行家在"
    assert [row[2:4] for row in table(app, "cache")] == [["(4, 1, 8)", "256"], ["(4, 2, 8)", "512"]]
    assert app.query_params["word"] == "2"
    run = load().run(MONEY)
    looks = [[float(x.replace("−", "-")) for x in row[1:]] for row in table(app, "looks")]
    assert looks == pytest.approx(run.weights["cross", 0][:, 1], rel=0.05, abs=0.005)
    app.button("word_back").click().run()
    assert app.subheader[0].value == "银行家"


def test_an_example_takes_the_place_of_the_sentence(app_test):
    app = app_test("translator")
    assert app.subheader[0].value == "猫坐在垫子上"
    app.button("example_2").click().run()
    assert app.subheader[0].value == "老鼠追猫"
    assert app.query_params["english"] == "the mouse chases the cat"


def test_play_begins_anew_and_any_other_control_rests(app_test):
    app = app_test("translator", english=MONEY)
    count = app.slider("word").value
    assert count > 3
    app.button("word_play").click().run()
    assert app.slider("word").value == 1
    assert app.button("word_play").label == "Pause"
    app.session_state["word_due"] = 2  # what the beat asks for
    app.run()
    assert app.slider("word").value == 2
    assert app.button("word_play").label == "Pause"
    app.slider("word").set_value(3).run()
    assert app.button("word_play").label == "Play"
    app.button("word_play").click().run()
    assert app.slider("word").value == 3
    app.session_state["word_due"] = count
    app.run()
    assert app.button("word_play").label == "Play"  # the last word: it is done
    assert app.query_params.get("word") is None


def test_words_nobody_taught_it_are_named_in_the_readers_language(app_test):
    app = app_test("translator", lang="zh", english="the catt chases <b>dgo")
    said = [error.value.replace("\\", "") for error in app.error]
    assert len(said) == 2 + 1  # catt, b, dgo
    assert "catt" in said[0]
    assert "cat, cats" in said[0]
    assert "最接近" in said[0]
    app = app_test("translator", english=" ")
    assert "write at least one word" in app.error[0].value


@pytest.mark.parametrize(
    ("place", "rows", "labels"),
    [
        ("encoder", "all", {"S": [*RIVER.split()]}),
        ("decoder", "all", {"S": ["<begin>", "渔夫", "在", "河岸", "等"]}),
        ("decoder", "one", {"S": ["河岸"], "N": ["河岸"], "P": ["<begin>", "渔夫", "在"],
                            "T": ["<begin>", "渔夫", "在", "河岸"]}),
        ("cross", "all", {"S": ["<begin>", "渔夫", "在", "河岸", "等"], "T": [*RIVER.split()]}),
        ("cross", "one", {"S": ["河岸"], "T": [*RIVER.split()]}),
    ],
)  # fmt: skip
def test_the_microscope_shows_the_very_computation(app_test, place, rows, labels):
    app = app_test("translator", english=RIVER, place=place, rows=rows, word=4)
    header, values = sent(app)
    manifest = header["manifest"]
    assert manifest["labels"] == labels
    run, step = load().run(RIVER), 3 if rows == "one" else None
    trace = load().trace(run, place, 0, step)
    shapes = {one["symbol"]: tuple(one["shape"]) for one in manifest["steps"]}
    assert shapes == {symbol: trace.shape(symbol) for symbol in trace}
    last = manifest["steps"][-1]["tensor"]
    shown = values[last["offset"] :][: trace["projected"].numel()]
    out = run.out[place, 0]
    out = out if step is None else out[step : step + 1]
    assert shown == pytest.approx(out.flatten().numpy(), abs=1e-6)


def test_what_is_taken_away_stands_in_the_link_and_changes_the_numbers(app_test):
    app = app_test("translator", english=MONEY, silent="decoder.1.1", cuts="encoder.1.0.6.2")
    edits = Edits(cuts=(("encoder", 0, -1, 5, 1),), silent=(("decoder", 0, 0),))
    run = load().run(MONEY, edits)
    written = "".join(run.target) or "–"
    assert app.subheader[0].value.replace("\\", "") == written
    whole = load().run(MONEY)
    given = load().chances(MONEY, whole.target, edits)
    rows = table(app, "comparison")
    assert [row[1] for row in rows[:-1]] == list(whole.target)
    assert [float(row[3].replace("−", "-")) for row in rows] == pytest.approx(
        given, rel=0.01, abs=1e-3
    )
    header, _values = sent(app)
    assert "mask" in {step["symbol"] for step in header["manifest"]["steps"]}
    app.button("cut_reset").click().run()
    assert app.subheader[0].value == "银行家在银行等"
    assert "silent" not in app.query_params
    assert "cuts" not in app.query_params


def test_a_link_that_is_cut_by_hand(app_test):
    app = app_test("translator", english=MONEY)
    app.selectbox("cut_row_encoder_6").select(5)
    app.selectbox("cut_key_encoder_6").select(1)
    app.run()
    app.button("cut_add").click().run()
    assert app.query_params["cuts"] == "encoder.1.0.6.2"


def test_odd_links_lose_nothing(app_test):
    app = app_test(
        "translator", silent="encoder.9.9,x,encoder.1", cuts="cross.1.0.99.1,a.b.c.d.e", word="x",
        swap="99.nobody", place="nowhere",
    )  # fmt: skip
    assert app.subheader[0].value == "猫坐在垫子上"


def test_it_says_where_it_is_unsure(app_test):
    app = app_test("translator", english="the cat chases the dog at the bank")
    run = load().run("the cat chases the dog at the bank")
    least = min(run.steps, key=lambda step: step.probabilities[0][1])
    assert least.probabilities[0][1] < 0.9
    assert least.word in app.info[0].value.replace("\\", "")
    assert not app_test("translator", english=MONEY).info


def test_all_heads_are_tried(app_test):
    app = app_test("translator", english=MONEY, word=3)
    run = load().run(MONEY)
    found = studies.rests_on(load(), MONEY, run.target, 2)
    rows = table(app, "rests")
    assert len(rows) == 16
    assert rows[0][0] == f"{found[0].place} {found[0].layer + 1} · head {found[0].head + 1}"
    assert rows[0][2] == ("".join(found[0].target) or "–")


def test_a_swapped_word_changes_the_translation(app_test):
    app = app_test("translator", english=MONEY, swap="2.fisherman")
    shown = [m.value for m in app.markdown if "渔夫在河岸等" in m.value]
    assert shown
    assert "银行家在银行等" in shown[0]


def test_two_vectors_of_one_word(app_test):
    app = app_test("translator")
    rows = table(app, "vectors")
    found = studies.apart(load().run(RIVER), 5, load().run(MONEY), 5)
    assert rows[0][1:] == rows[1][1:] == ["1", "0"]
    assert [float(row[1]) for row in rows] == pytest.approx([c for c, _ in found], rel=1e-3)
    assert [float(row[2]) for row in rows] == pytest.approx([d for _, d in found], rel=1e-3)
    app = app_test("translator", first="the cat sleeps", second="she bought two books")
    assert app.info[0].value == "These two sentences share no word."


def test_the_figures_are_those_of_the_training(app_test):
    app = app_test("translator")
    figures = load().about["figures"]
    rows = table(app, "figures")
    assert rows[0][1] == f"{figures['pairs']['held out']:,}"
    assert rows[0][3] == percent(figures["exact"]["held out"])
    assert rows[3][3] == percent(figures["aligned"]["share"])


def test_a_share_is_never_rounded_up():
    assert [percent(x) for x in (1.0, 0.99999, 0.97148, 0.5)] == [
        "100 %", "99.99 %", "97.14 %", "50 %"
    ]  # fmt: skip


def test_the_code_runs_and_prints_the_translation(capsys):
    exec(compile(CODE.format(text=MONEY), "snippet", "exec"), {})
    printed = capsys.readouterr().out
    assert "['银行家', '在', '银行', '等']" in printed
    assert float(re.search(r"tensor\(([\d.e-]+)\)", printed)[1]) <= 1e-6


def test_a_head_is_chosen_beside_the_microscope_too(app_test):
    app = app_test("translator", head=2)
    control = next(group for group in app.get("button_group") if group.label == "Head")
    assert control.value == 2
    assert sent(app)[0]["manifest"]["pick"] == {"h": 2}
