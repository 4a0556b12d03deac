"""A small bilingual grammar that knows which word came from which.

A phrase holds its English words in English order and its Chinese words in Chinese order; each
Chinese word knows the English words it renders. So every sentence comes with its true alignment.

>>> import random
>>> pair = sentence(random.Random(5))
>>> len(pair.zh) == len(pair.links)
True
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from core.translator import lexicon as words


class Pair(NamedTuple):
    """A sentence and its translation. `links[t]`: positions of the English words that Chinese word
    t renders, any of which is a true source. `kind` names the sentence pattern, `combination` who
    does what to whom or where ("" where there are too few to hold some out)."""

    en: tuple[str, ...]
    zh: tuple[str, ...]
    links: tuple[tuple[int, ...], ...]
    kind: str
    combination: str


class Word:
    """An English word at its place: two "the" are two words."""

    def __init__(self, text: str):
        self.text = text


class Phrase(NamedTuple):
    """English words, Chinese words with the English words they render, and what it is about."""

    en: list[Word]
    zh: list[tuple[str, list[Word]]]
    about: str = ""
    third: bool = True  # as a subject: takes "sits" and "does"


def say(english: str, *chinese: str) -> Phrase:
    """A phrase of fixed words; every Chinese word renders all the English ones."""
    made = [Word(text) for text in english.split()]
    return Phrase(made, [(text, made) for text in chinese], english)


NOTHING = say("")


def pair(kind: str, combination: str, english: list[Phrase], chinese: list) -> Pair:
    """Put phrases in English order and Chinese words in theirs, and number the links.

    >>> cat, sat = say("the cat", "猫"), say("sat", "坐")
    >>> pair("", "", [cat, sat], [*cat.zh, *sat.zh])[:3]
    (('the', 'cat', 'sat'), ('猫', '坐'), ((0, 1), (2,)))
    """
    order = [word for phrase in english for word in phrase.en]
    place = {word: i for i, word in enumerate(order)}
    links = tuple(tuple(sorted(place[word] for word in source)) for _, source in chinese)
    return Pair(
        tuple(word.text for word in order), tuple(text for text, _ in chinese), links, kind,
        combination,
    )  # fmt: skip


# --- phrases ----------------------------------------------------------------------------------


def named(rng: Random, noun: words.Noun, adjectives=(), many: bool = True) -> Phrase:
    """A noun with what stands before it: the, a, this, two, my, the girl's …

    A number or this/that needs a measure word, which renders both it and the noun. `many`: numbers
    may be among them.
    """
    kind = rng.choices(
        ("the", "a", "this", "number", "owner", "owned"), (40, 12, 10, 18 * many, 12, 8)
    )[0]
    adjective = say(*rng.choice(adjectives)) if adjectives and rng.random() < 0.3 else NOTHING
    many = kind == "number"
    head = say(noun.plural if many else noun.one, noun.zh)
    before = _before(rng, kind, (adjective.en or head.en)[0].text)
    zh = list(before.zh)
    if kind in ("a", "this", "number"):
        zh.append((noun.measure, before.en + head.en))
    zh += adjective.zh + head.zh
    return Phrase(before.en + adjective.en + head.en, zh, noun.one, not many)


def _a(following: str) -> str:
    return "an" if following[0] in "aeiou" else "a"


def _before(rng, kind, following) -> Phrase:
    if kind == "the":
        return say("the")
    if kind == "a":
        return say(_a(following), "一")
    if kind == "this":
        return say(*rng.choice((("this", "这"), ("that", "那"))))
    if kind == "number":
        return say(*rng.choice(words.NUMBERS))
    if kind == "owner":
        return say(*rng.choice(words.OWNERS))
    of, noun = say("'s", "的"), rng.choice(words.PEOPLE)
    first = say("the") if rng.random() < 0.6 else say(*rng.choice(words.OWNERS))
    owner = say(noun.one, noun.zh)
    return Phrase(first.en + owner.en + of.en, first.zh + owner.zh + of.zh)


def being(rng: Random, pronouns=(), nouns=words.BEINGS) -> Phrase:
    """Someone: a pronoun or a noun phrase."""
    if pronouns and rng.random() < 0.2:
        english, chinese = rng.choice(pronouns)
        return say(english, chinese)._replace(third=english in ("he", "she"))
    noun = rng.choice(nouns)
    return named(rng, noun, words.COLOURS if noun in words.ANIMALS else words.AGES)


def place(rng: Random) -> Phrase:
    """Somewhere: "on the mat", 在垫子上. Both 在 and 上 render "on"."""
    english = rng.choice(list(words.WHERE))
    after, fitting = words.WHERE[english]
    where, noun = say(english), named(rng, words.NOUNS[rng.choice(fitting)], many=False)
    return _at(where, noun.en, noun.zh, after, f"{english} {noun.about}")


def _at(where, english, chinese, after, about):
    zh = [("在", where.en), *chinese, *([(after, where.en)] if after else [])]
    return Phrase([*where.en, *english], zh, about)


def bank(river: bool) -> Phrase:
    """ "at the bank" with nothing that says which: 在河岸 or 在银行."""
    the, word = say("the"), say("bank", "河岸" if river else "银行")
    return _at(say("at"), the.en + word.en, word.zh, "", "at bank")


class Doing(NamedTuple):
    """A verb in its tense: English words, and Chinese words before, at and after the verb."""

    en: list[Word]
    before: list
    verb: list
    after: list


def doing(verb: words.Verb, tense: str, negated: bool, third: bool, done: bool = False) -> Doing:
    """ "does not chase" 不追, "chased" 追了 (了 only where `done`), "will chase" 会追."""
    if tense == "future":
        will, no, main = say("will", "会"), say("not", "不") if negated else NOTHING, say(verb.base)
        return Doing(will.en + no.en + main.en, no.zh + will.zh, [(verb.zh, main.en)], [])
    if negated:
        help = "did" if tense == "past" else "does" if third else "do"
        none = tense == "past" or verb is words.HAVE
        no, main = say(f"{help} not", "没" if none else "不"), say(verb.base)
        return Doing(no.en + main.en, no.zh, [(verb.zh, main.en)], [])
    main = say(verb.past if tense == "past" else verb.third if third else verb.base)
    after = [("了", main.en)] if tense == "past" and done else []
    return Doing(main.en, [], [(verb.zh, main.en)], after)


def _tense(rng, future=True):
    tense = rng.choices(("present", "past", "future"), (4, 4, 2 if future else 0))[0]
    time = say(*rng.choice(words.TIMES[tense])) if rng.random() < 0.4 else NOTHING
    return tense, time


def _arranged(rng, kind, combination, time, subject, did, rest, where=NOTHING, early=False) -> Pair:
    """English with time (and sometimes the place) first or last; Chinese with time always first."""
    verb = Phrase(did.en, [])
    front = rng.random() < 0.35
    if where.en and kind.startswith("bank") and rng.random() < 0.35:
        english = [where, subject, verb, rest, time]
    elif front:
        english = [time, subject, verb, rest, where]
    else:
        english = [subject, verb, rest, where, time]
    middle = [*where.zh, *did.verb, *did.after] if early else [*did.verb, *did.after, *where.zh]
    chinese = [*time.zh, *subject.zh, *did.before, *middle, *rest.zh]
    return pair(kind, combination, english, chinese)


# --- sentences --------------------------------------------------------------------------------


def _meeting(rng):
    """Who does something to whom: the cat chases the mouse."""
    subject, other = being(rng, words.SUBJECTS), being(rng, words.OBJECTS)
    liking = rng.random() < 0.2
    verb = rng.choice(words.LIKES if liking else words.ON_BEINGS)
    if liking and rng.random() < 0.4:  # any of them: she likes cats
        noun = rng.choice((*words.BEINGS, *words.THINGS))
        other = say(noun.plural, noun.zh)._replace(about=noun.one)
    tense, time = ("present", NOTHING) if liking else _tense(rng)
    did = doing(verb, tense, rng.random() < 0.25, subject.third, done=True)
    key = f"{subject.about} {verb.base} {other.about}"
    where = place(rng) if not liking and rng.random() < 0.2 else NOTHING
    return _arranged(rng, "meeting", key, time, subject, did, other, where, early=True)


def _handling(rng):
    """Who does something with a thing: my friend bought two red hats."""
    subject = being(rng, words.SUBJECTS, words.HUMANS)
    verb, (tense, time) = rng.choice(words.ON_THINGS), _tense(rng)
    noun = rng.choice(words.THINGS)
    if rng.random() < 0.25:
        verb, fitting = rng.choice(words.FITTING)
        noun = words.NOUNS[rng.choice(fitting)]
    thing = named(rng, noun, words.LOOKS)
    did = doing(verb, tense, rng.random() < 0.2, subject.third, done=True)
    key = f"{subject.about} {verb.base} {thing.about}"
    where = place(rng) if rng.random() < 0.2 else NOTHING
    return _arranged(rng, "handling", key, time, subject, did, thing, where, early=True)


def _having(rng):
    """Who has how many: the girl has two cats. Who has none: does not have a cat, 没有猫."""
    subject, (tense, time) = being(rng, words.SUBJECTS, words.HUMANS), _tense(rng)
    noun, none = rng.choice((*words.ANIMALS, *words.THINGS)), rng.random() < 0.2
    did = doing(words.HAVE, tense, none, subject.third)
    if none:
        article, head = say(_a(noun.one)), say(noun.one, noun.zh)
        owned = Phrase(article.en + head.en, head.zh)
        return _arranged(rng, "having", "", time, subject, did, owned)
    english, chinese = rng.choice(((_a(noun.one), "一"), *words.NUMBERS))
    number = say(english, chinese)
    head = say(noun.one if chinese == "一" else noun.plural, noun.zh)
    measure = (noun.measure, number.en + head.en)
    owned = Phrase(number.en + head.en, [*number.zh, measure, *head.zh])
    return _arranged(rng, "having", f"{subject.about} have {noun.one}", time, subject, did, owned)


def _standing(rng):
    """Who is where, the place after the verb: the cat sat on the mat, 猫坐在垫子上."""
    return _somewhere(rng, rng.choice(words.POSTURES), "standing", early=False)


def _acting(rng):
    """Who does something where, the place before the verb: 猫在花园里玩."""
    return _somewhere(rng, rng.choice(words.DOINGS), "acting", early=True)


def _somewhere(rng, verb, kind, early):
    subject, (tense, time) = being(rng, words.SUBJECTS), _tense(rng)
    # Without a place now and then, so that 在 tells that there is one.
    where = place(rng) if rng.random() < 0.8 else NOTHING
    did = doing(verb, tense, rng.random() < 0.25, subject.third)
    key = f"{subject.about} {verb.base} {where.about}"
    return _arranged(rng, kind, key, time, subject, did, NOTHING, where, early)


def _there(rng):
    """Who is where, with nothing but "is": the mouse is in the box, 老鼠在盒子里."""
    subject, where, (tense, time) = being(rng, words.SUBJECTS), place(rng), _tense(rng, False)
    return _stays(rng, "there", subject, where, tense, time)


def _stays(rng, kind, subject, where, tense, time):
    is_, no, did = _copula(rng, subject, tense)
    (_at, on), *rest = where.zh
    where = where._replace(zh=[("在", is_.en + on), *rest])
    key = f"{subject.about} be {where.about}"
    return _arranged(rng, kind, key, time, subject, did._replace(verb=no), NOTHING, where)


def _copula(rng, subject, tense):
    """ "is", "was not" …: the word, what "not" becomes, and both as something done."""
    past, plain = {"i": ("was", "am")}.get(
        subject.about, ("was", "is") if subject.third else ("were", "are")
    )
    copula = say(past if tense == "past" else plain)
    no = say("not", "不") if rng.random() < 0.3 else NOTHING
    return copula, no.zh, Doing(copula.en + no.en, [], [], [])


def _being(rng):
    """What someone is like: the cat is not big. 很 renders "is"."""
    subject, (tense, time) = being(rng, words.SUBJECTS), _tense(rng, future=False)
    quality = rng.choice(words.STATES)
    return _is(rng, "being", f"{subject.about} be {quality[0]}", subject, quality, tense, time)


def _is(rng, kind, key, subject, quality, tense, time):
    copula, no, did = _copula(rng, subject, tense)
    how, degree = say(*quality), [("很", copula.en)]
    did = did._replace(verb=no or degree)
    return _arranged(rng, kind, key, time, subject, did, how)


# Sentences with "bank": only its company says whether 河岸 (riverside) or 银行 (money) is meant.


def _bank_next(rng):
    """The word next to it decides: river bank, bank account."""
    return _river_bank(rng) if rng.random() < 0.5 else _account(rng)


def _river_bank(rng):
    """ "the river bank" or "the bank of the river": 河岸 renders "river" and "bank"."""
    subject, (tense, time) = being(rng, words.SUBJECTS), _tense(rng)
    early = rng.random() < 0.5
    verb = rng.choice(words.DOINGS if early else words.POSTURES)
    on, the = say("on"), say("the")
    of = rng.random() < 0.4
    name = say("bank of the river") if of else say("river bank")
    both = [name.en[0], name.en[-1]]
    where = _at(on, the.en + name.en, [("河岸", both)], "上", "river bank")
    did = doing(verb, tense, rng.random() < 0.2, subject.third)
    key = f"{subject.about} {verb.base} river bank"
    return _arranged(rng, "bank next", key, time, subject, did, NOTHING, where, early)


def _account(rng):
    subject, (tense, time) = being(rng, words.SUBJECTS, words.HUMANS), _tense(rng)
    name = say("bank", "银行"), say("account", "账户")
    before = say("a", "一") if rng.random() < 0.5 else say(*rng.choice(words.OWNERS))
    measure = [("个", before.en + name[1].en)] if before.en[0].text == "a" else []
    thing = Phrase(
        before.en + name[0].en + name[1].en, [*before.zh, *measure, *name[0].zh, *name[1].zh]
    )
    verb = rng.choice((words.OPEN, words.HAVE))
    did = doing(verb, tense, verb is words.OPEN and rng.random() < 0.2, subject.third,
                done=verb is words.OPEN)  # fmt: skip
    key = f"{subject.about} {verb.base} account"
    return _arranged(rng, "bank next", key, time, subject, did, thing)


def _bank_who(rng):
    """Who is there decides: the fisherman waits at the bank, the banker waits at the bank."""
    river = rng.random() < 0.5
    nouns = (*words.RIVERSIDE * 4, *words.ANIMALS) if river else words.MONEYED
    subject, where = being(rng, (), nouns), bank(river)
    if rng.random() < 0.15:
        return _stays(rng, "bank who", subject, where, *_tense(rng, future=False))
    tense, time = _tense(rng)
    verb = rng.choice((*words.DOINGS, *words.POSTURES, words.WORK))
    early = verb not in words.POSTURES
    did = doing(verb, tense, rng.random() < 0.25, subject.third)
    key = f"{subject.about} {verb.base} bank"
    return _arranged(rng, "bank who", key, time, subject, did, NOTHING, where, early)


def _bank_what(rng):
    """What is done there decides: she saves money at the bank, she catches fish at the bank."""
    river = rng.random() < 0.5
    verb, english, chinese = rng.choice(words.AT_RIVER if river else words.AT_COUNTER)
    subject, (tense, time) = being(rng, words.SUBJECTS, words.HUMANS), _tense(rng)
    thing = say(english, chinese)
    did = doing(verb, tense, rng.random() < 0.25, subject.third, done=True)
    key = f"{subject.about} {verb.base} {english} bank"
    where = bank(river)
    return _arranged(rng, "bank what", key, time, subject, did, thing, where, early=True)


def _bank_is(rng):
    """What it is like decides: the bank is steep, the bank is rich. Too few to hold any out."""
    river = rng.random() < 0.5
    quality, (tense, time) = rng.choice(words.STEEP if river else words.RICH), _tense(rng, False)
    the, name = say("the"), say("bank", "河岸" if river else "银行")
    subject = Phrase(the.en + name.en, name.zh, "bank")
    return _is(rng, "bank is", "", subject, quality, tense, time)


PATTERNS = {
    _meeting: 22, _handling: 10, _having: 6, _standing: 16, _acting: 12, _being: 6, _there: 5,
    _bank_next: 9, _bank_who: 9, _bank_what: 9, _bank_is: 1,
}  # fmt: skip


def sentence(rng: Random) -> Pair:
    """One pair, drawn from all patterns."""
    return rng.choices(list(PATTERNS), list(PATTERNS.values()))[0](rng)
