"""The bilingual grammar and what is drawn from it."""

from random import Random

import pytest

from core.translator import corpus, grammar, lexicon

PAIRS = corpus.draw(3000, seed=1)
SENSES = {"河岸", "银行"}


def test_the_same_seed_draws_the_same_pairs_and_another_seed_others():
    assert corpus.draw(200, seed=1) == PAIRS[:200]
    assert corpus.draw(200, seed=2) != PAIRS[:200]


def test_all_english_sentences_are_distinct_and_each_has_one_translation():
    assert len({pair.en for pair in PAIRS}) == len(PAIRS)
    rng, seen = Random(3), {}
    for _ in range(5000):
        pair = grammar.sentence(rng)
        assert seen.setdefault(pair.en, pair.zh) == pair.zh


def test_no_combination_is_on_both_sides():
    trained, held = corpus.split(PAIRS)
    assert len(trained) + len(held) == len(PAIRS)
    assert 0.06 < len(held) / len(PAIRS) < 0.14
    assert not {pair.combination for pair in trained} & {pair.combination for pair in held}
    assert {pair.kind for pair in trained} - {pair.kind for pair in held} == {"bank is"}


def test_every_chinese_word_names_english_words_that_are_there():
    for pair in PAIRS:
        assert len(pair.links) == len(pair.zh)
        for links in pair.links:
            assert links
            assert set(links) <= set(range(len(pair.en)))


def test_links_agree_with_the_lexicon():
    nouns = {noun.zh: {noun.one, noun.plural} for noun in lexicon.NOUNS.values()}
    nouns["树"] |= {"trees"}
    nouns["花"] |= {"flowers"}
    verbs = (*lexicon.ON_BEINGS, *lexicon.ON_THINGS, *lexicon.POSTURES, *lexicon.DOINGS)
    past = {verb.past for verb in (*verbs, lexicon.OPEN)}
    past |= {verb.past for verb, *_ in (*lexicon.AT_RIVER, *lexicon.AT_COUNTER, *lexicon.FITTING)}
    checked = 0
    for pair in PAIRS:
        for word, links in zip(pair.zh, pair.links, strict=True):
            source = {pair.en[i] for i in links}
            if word in nouns:
                assert source <= nouns[word], pair
            elif word == "了":
                assert source <= past, pair
            elif word in SENSES:
                assert "bank" in source, pair
            else:
                continue
            checked += 1
    assert checked > 5000


def test_a_measure_word_belongs_to_its_noun():
    measures = {form: noun.measure for noun in lexicon.NOUNS.values()
                for form in (noun.one, noun.plural)}  # fmt: skip
    checked = 0
    for pair in PAIRS:
        for before, word in zip(pair.zh, pair.zh[1:], strict=False):
            if before in {"两", "三", "四", "五", "这", "那"}:
                noun = [pair.en[i] for i in pair.links[pair.zh.index(before) + 1]][-1]
                assert measures[noun] == word, pair
                checked += 1
                break
    assert checked > 300


def test_only_the_company_of_bank_differs():
    banks = [pair for pair in PAIRS if "bank" in pair.en and pair.kind in ("bank who", "bank what")]
    found = {}
    for pair in banks:
        (sense,) = SENSES & set(pair.zh)
        company = tuple(word for word in pair.en if word not in ("at", "the", "bank"))
        found.setdefault(sense, set()).add(company)
        at = pair.en.index("bank")
        assert pair.en[at - 2 : at + 1] == ("at", "the", "bank")
    assert found.keys() == SENSES
    assert min(map(len, found.values())) > 100
    assert not found["河岸"] & found["银行"]
    # The word that decides can be far away.
    clues = {"fisherman", "fishermen", "fish", "trees", "flowers", "banker", "bankers", "money"}
    gaps = [
        min(abs(pair.en.index("bank") - i) for i, word in enumerate(pair.en) if word in clues)
        for pair in banks
        if clues & set(pair.en)
    ]
    assert max(gaps) >= 7


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("the cat sat on the mat", "猫 坐 在 垫子 上"),
        ("the cat chases the mouse", "猫 追 老鼠"),
        ("the mouse chases the cat", "老鼠 追 猫"),
    ],
)
def test_the_sentences_people_learn_with_are_in_the_grammar(english, chinese):
    cat, mouse = (grammar.say(f"the {noun}", zh) for noun, zh in (("cat", "猫"), ("mouse", "老鼠")))
    if "mat" in english:
        on, mat = grammar.say("on"), grammar.say("the mat", "垫子")
        sat, where = grammar.say("sat", "坐"), grammar._at(on, mat.en, mat.zh, "上", "")
        made = grammar.pair("", "", [cat, sat, where], [*cat.zh, *sat.zh, *where.zh])
    else:
        chases = grammar.say("chases", "追")
        who, whom = (cat, mouse) if english.startswith("the cat") else (mouse, cat)
        made = grammar.pair("", "", [who, chases, whom], [*who.zh, *chases.zh, *whom.zh])
    assert (" ".join(made.en), " ".join(made.zh)) == (english, chinese)


def test_numbers_stand_for_words():
    words = corpus.vocabulary([("b", "a"), ("a", "c")])
    assert words == ("<pad>", "<begin>", "<end>", "a", "b", "c")
    assert corpus.numbers([("b", "a"), ("c",)], words, marks=True).tolist() == [
        [1, 4, 3, 2],
        [1, 5, 2, 0],
    ]
