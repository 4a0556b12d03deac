"""The shipped translator: its figures, its cache, its traces, and what taking parts away does."""

import itertools
import subprocess
import sys

import pytest
import torch

from core.errors import InputError
from core.translator import Edits, corpus, evaluate, load, studies, train
from core.translator.model import BEGIN, PLACES
from core.translator.translator import FOLDER, loss_curve, words

RIVER, MONEY = "the fisherman waits at the bank", "the banker waits at the bank"
SAMPLE = 400  # held-out pairs


@pytest.fixture(scope="module")
def translator():
    return load()


@pytest.fixture(scope="module")
def held():
    _trained, held = corpus.split(corpus.draw(8000))
    return held


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("the cat sat on the mat", "猫 坐 在 垫子 上"),
        ("the cat chases the mouse", "猫 追 老鼠"),
        ("the mouse chases the cat", "老鼠 追 猫"),
        ("Two cats did not sleep under the table yesterday.", "昨天 两 只 猫 没 睡 在 桌子 下"),
        ("my friend's dog doesn't play in the garden", "我的 朋友 的 狗 不 在 花园 里 玩"),
        ("the dog sleeps on the river bank", "狗 睡 在 河岸 上"),
        ("the girl opens a bank account", "女孩 开 一 个 银行 账户"),
        ("the mouse was not in the box", "老鼠 不 在 盒子 里"),
        ("he loves birds", "他 爱 鸟"),
        ("yesterday the child ate two red apples", "昨天 孩子 吃 了 两 个 红 苹果"),
        (RIVER, "渔夫 在 河岸 等"),
        (MONEY, "银行家 在 银行 等"),
        ("at the bank my friend's old teacher did not catch fish yesterday",
         "昨天 我的 朋友 的 老 老师 没 在 河岸 钓 鱼"),
        ("at the bank my friend's old teacher did not save money yesterday",
         "昨天 我的 朋友 的 老 老师 没 在 银行 存 钱"),
    ],
)  # fmt: skip
def test_translations(translator, english, chinese):
    assert translator.translate(english) == chinese.split()


def test_the_figures_reach_their_goals(translator):
    figures, training = translator.about["figures"], translator.about["training"]
    assert figures["pairs"]["trained"] + figures["pairs"]["held out"] >= 20_000
    assert figures["pairs"]["held out"] >= 2000
    assert figures["exact"]["held out"] >= 0.995
    assert figures["exact"]["bank"] == figures["exact"]["bank apart"] == 1
    assert figures["aligned"]["share"] >= 0.92
    assert training["seconds"] <= 15 * 60
    assert (FOLDER / "translator.safetensors").stat().st_size <= 1 << 20
    assert len(translator.known) >= 100
    assert translator.sizes.H <= 32
    assert translator.sizes.h == 4
    assert max(translator.sizes.encoder, translator.sizes.decoder) <= 2


def test_the_weights_do_on_a_sample_what_the_figures_say(translator, held):
    figures = translator.about["figures"]
    parts = translator.network, held[:SAMPLE], translator.source_words, translator.target_words
    assert evaluate.exact(*parts) == pytest.approx(figures["exact"]["held out"], abs=0.005)
    layer, head = figures["aligned"]["layer"], figures["aligned"]["head"]
    shares = evaluate.aligned(*parts)
    assert shares[layer, head] == pytest.approx(figures["aligned"]["share"], abs=0.02)
    assert shares[layer, head] >= 0.92
    banks = [pair for pair in held if pair.kind in ("bank who", "bank what")]
    assert len(banks) > 50
    assert evaluate.exact(parts[0], banks, *parts[2:]) == 1


def test_alignment_is_counted_at_the_row_that_predicts_the_word(translator, held):
    pair = next(pair for pair in held if len(pair.zh) > 6)
    run = translator.run(" ".join(pair.en))
    assert run.target == pair.zh
    strongest = run.weights["cross", 0].argmax(-1)  # (h, S)
    for head in range(4):
        hits = [int(strongest[head, t]) in links for t, links in enumerate(pair.links)]
        share = evaluate.aligned(
            translator.network, [pair], translator.source_words, translator.target_words
        )
        assert float(share[0, head]) == pytest.approx(sum(hits) / len(hits))


def test_training_lowers_the_loss_and_a_seed_makes_the_same_losses():
    pairs = corpus.draw(500)
    names = [corpus.vocabulary(pair[side] for pair in pairs) for side in (0, 1)]
    settings = train.Settings(steps=30, batch=32)
    losses = [
        list(train.steps(train.fresh(*names, seed), pairs, *names, settings)) for seed in (0, 0, 1)
    ]
    assert sum(losses[0][-5:]) < 0.9 * sum(losses[0][:5])
    assert losses[0] == losses[1] != losses[2]


def test_the_training_begins_as_the_shipped_one_did():
    trained, held, *names = train.prepare()
    figures = load().about["figures"]["pairs"]
    assert (len(trained), len(held)) == (figures["trained"], figures["held out"])
    assert [list(load().source_words), list(load().target_words)] == [list(n) for n in names]
    settings = train.Settings()
    assert settings.steps == load().about["training"]["steps"]
    losses = itertools.islice(train.steps(train.fresh(*names), trained, *names, settings), 40)
    steps, shipped = loss_curve()
    assert steps[1] == 40
    # Other processors round otherwise.
    assert list(losses)[19::20] == pytest.approx(shipped[:2], rel=1e-3)


# --- the cache --------------------------------------------------------------------------------


def test_each_step_computes_one_row_and_keeps_the_others(translator, monkeypatch):
    asked = []
    decode = translator.network.decode

    def watched(ids, encoded, seen, past, *rest):
        asked.append((ids.shape[1], past and past[0]["K"].shape[-2]))
        return decode(ids, encoded, seen, past, *rest)

    monkeypatch.setattr(translator.network, "decode", watched)
    run = translator.run("the cat sat on the mat")
    assert asked == [(1, None), (1, 1), (1, 2), (1, 3), (1, 4), (1, 5)]
    assert [step.cache for step in run.steps] == [(4, n, 8) for n in range(1, 7)]
    per_row = 2 * translator.sizes.decoder * 32 * 4  # K and V, float32
    assert [step.cache_bytes for step in run.steps] == [per_row * n for n in range(1, 7)]
    assert run.source_bytes == per_row * 6


def test_the_cache_changes_no_probability(translator):
    text = "at the bank my friend's old teacher did not catch fish yesterday"
    run = translator.run(text)
    whole = translator.chances(text, run.target)
    kept = [step.probabilities[0][1] for step in run.steps]
    assert kept == pytest.approx(whole, abs=1e-6)


# --- traces -----------------------------------------------------------------------------------

EDITS = {
    "whole": Edits(),
    "cut": Edits(
        cuts=(("encoder", 0, -1, 5, 1), ("encoder", 1, 2, 0, 3), ("decoder", 0, 1, 2, 1),
              ("cross", 0, -1, 1, 1)),
        silent=(("cross", 0, 1), ("encoder", 1, 0)),
    ),
    "blind": Edits(cuts=tuple(("encoder", 1, 3, 2, j) for j in range(6))),
}  # fmt: skip


@pytest.mark.parametrize("edits", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("place", PLACES)
def test_a_trace_is_the_models_own_forward(translator, place, edits):
    run = translator.run(RIVER, edits)
    for layer in range(translator.sizes.layers(place)):
        trace = translator.trace(run, place, layer)
        near = {"rtol": 0, "atol": 1e-6}
        torch.testing.assert_close(trace["projected"], run.out[place, layer], **near)
        torch.testing.assert_close(trace["weights"], run.weights[place, layer], **near)
        net = translator.network.attention(place, layer)
        assert torch.equal(trace["W_Q"], net.W_Q)
        for step in range(len(run.steps)) if place != "encoder" else ():
            one = translator.trace(run, place, layer, step)
            row = run.out[place, layer][step : step + 1]
            torch.testing.assert_close(one["projected"], row, **near)
            if place == "decoder" and step:
                assert one["past_key"].shape == (4, step, 8)
                assert one["weights"].shape == (4, 1, step + 1)


# --- cut and see ------------------------------------------------------------------------------


def test_a_cut_link_has_no_weight_and_the_rest_of_its_row_takes_it(translator):
    run = translator.run(RIVER, Edits(cuts=(("encoder", 0, 2, 5, 1),)))
    weights, before = run.weights["encoder", 0], translator.run(RIVER).weights["encoder", 0]
    assert weights[2, 5, 1] == 0 < before[2, 5, 1]
    assert weights[2, 5].sum() == pytest.approx(1)
    untouched = torch.ones(4, 6, dtype=torch.bool)
    untouched[2, 5] = False
    assert torch.equal(weights[untouched], before[untouched])


def test_a_row_without_any_link_is_answered_with_nothing(translator):
    run = translator.run(RIVER, EDITS["blind"])
    assert run.weights["encoder", 1][3, 2].tolist() == [0] * 6
    trace = translator.trace(run, "encoder", 1)
    assert trace["output"][3, 2].tolist() == [0] * 8
    assert [notice.id for notice in trace.notices] == ["blind"]


def test_a_silenced_head_is_one_whose_rows_of_w_o_are_zero(translator):
    network = translator.network
    attention = network.attention("encoder", 0)
    kept = attention.W_O.clone()
    silent = translator.run(RIVER, Edits(silent=(("encoder", 0, 1),)))
    try:
        attention.W_O[8:16] = 0
        by_hand = translator.run(RIVER)
    finally:
        attention.W_O.copy_(kept)
    assert silent.target == by_hand.target
    torch.testing.assert_close(silent.encoded[-1], by_hand.encoded[-1])


def test_one_word_of_company_changes_bank(translator):
    river, money = translator.run(RIVER), translator.run(MONEY)
    assert ("河岸" in river.target, "银行" in money.target) == (True, True)
    found = studies.apart(river, 5, money, 5)
    same = (pytest.approx(1), 0)
    assert found[:2] == [same, same]  # the same word at the same place
    assert found[2][1] > 0  # one layer later they differ, two layers later clearly
    assert all(cosine < 0.96 and distance > 0.3 for cosine, distance in found[3:])


@pytest.mark.parametrize(
    ("text", "without"),
    [(MONEY, "银行家 在 河岸 等"), ("she saves money at the bank", "她 在 河岸 存 钱")],
)
def test_one_encoder_head_carries_the_money(translator, text, without):
    whole = translator.run(text).target
    first, second, *_ = studies.rests_on(translator, text, whole, whole.index("银行"))
    assert (first.place, first.layer, first.head) == ("encoder", 1, 1)
    assert first.target == tuple(without.split())
    assert first.chance < 0.01 < 0.8 < second.chance


def test_every_head_is_tried_alone(translator):
    target = translator.run(MONEY).target
    found = studies.rests_on(translator, MONEY, target, target.index("银行"))
    assert len(found) == 4 * (2 + 1 + 1)
    assert [one.chance for one in found] == sorted(one.chance for one in found)
    for one in found[:3]:
        edits = Edits(silent=((one.place, one.layer, one.head),))
        alone = translator.run(MONEY, edits)
        assert alone.target == one.target
        chance = translator.chances(MONEY, target, edits)[target.index("银行")]
        assert chance == pytest.approx(one.chance, abs=1e-5)
    fewer = studies.rests_on(translator, MONEY, target, 0, Edits(silent=(("cross", 0, 1),)))
    assert ("cross", 0, 1) not in {(one.place, one.layer, one.head) for one in fewer}


# --- what is typed ----------------------------------------------------------------------------


def test_words_are_read_as_people_write_them():
    assert words("The cat’s mouse won't sleep!") == (
        "the", "cat", "'s", "mouse", "will", "not", "sleep"
    )  # fmt: skip
    assert words("*** 123") == ("123",)


def test_unknown_words_are_named_with_the_nearest_known_ones(translator):
    found = dict(translator.unknown("the catt chases a dgo"))
    assert found.keys() == {"catt", "dgo"}
    assert found["catt"][0] == "cat"
    assert "dog" in found["dgo"]
    with pytest.raises(InputError) as caught:
        translator.translate("the catt sleeps")
    assert caught.value.id == "translator-unknown"
    assert "catt" in str(caught.value)
    assert "cat, cats" in str(caught.value)


@pytest.mark.parametrize(("text", "id"), [("  ", "translator-empty"),
                                          ("the cat " * 13, "translator-long")])  # fmt: skip
def test_what_cannot_be_translated_is_refused(translator, text, id):
    with pytest.raises(InputError) as caught:
        translator.run(text)
    assert caught.value.id == id


def test_the_engine_does_not_read_the_weights():
    code = "import core, sys; assert not [m for m in sys.modules if 'translator' in m]"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_begin_and_end_are_marks(translator):
    assert translator.target_words[BEGIN] == "<begin>"
    run = translator.run(RIVER)
    assert run.read == ("<begin>", *run.target)
    assert run.written == (*run.target, "<end>")


@pytest.mark.parametrize("given", [None, 5, b"the cat", ["the cat", "the dog"]])
def test_what_is_no_text_is_refused(given):
    with pytest.raises(InputError) as caught:
        load().translate(given)
    assert caught.value.id == "translator-text"


def test_a_very_long_word_is_quoted_in_short():
    with pytest.raises(InputError) as caught:
        load().translate("x" * 10_000)
    assert len(str(caught.value)) < 200
