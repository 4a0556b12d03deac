"""Models in the wild: what is captured is what the model computes, and watching changes nothing."""

import threading

import pytest
import torch

import core
from core import models
from core.models.capture import NAME, watch
from core.models.reading import read
from core.ops import Rotate
from tests.core.model_folders import KINDS, PAIRS, SIZES, entered, network, word_piece

OPEN = [kind for kind in KINDS if kind != "bloom"]
FROM_INPUTS = [kind for kind in OPEN if kind != "olmo2"]  # it normalises all heads as one
FIELDS = ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions")


@pytest.fixture(scope="module")
def networks():
    return {kind: network(kind) for kind in KINDS}


@pytest.fixture(scope="module")
def watched(networks):
    """Per kind: what the eager model gives, what it gives while watched, and the calls."""
    found = {}
    for kind in OPEN:
        made, given = networks[kind], entered(kind, batch=2)
        with torch.no_grad():
            plain = made(**given, output_attentions=True)
            with watch(made) as calls:
                seen = made(**given)
        found[kind] = plain, seen, calls
    return found


def own_weights(plain) -> dict[str, list]:
    """The eager model's attentions by the kind of call."""
    kinds = ("self", "encoder", "decoder", "cross")
    return {kind: list(plain.get(field) or []) for kind, field in zip(kinds, FIELDS, strict=True)}


@pytest.mark.parametrize("kind", OPEN)
def test_weights_are_those_of_the_eager_model(watched, kind):
    plain, _seen, calls = watched[kind]
    own = own_weights(plain)
    assert len(calls) == sum(map(len, own.values())) == (6 if kind in PAIRS else 2)
    for call in calls:
        wanted = own[call.kind][call.layer]
        assert call.trace()["weights"].shape == wanted.shape
        torch.testing.assert_close(call.trace()["weights"], wanted, atol=1e-5, rtol=0)
        assert call.deviation <= 1e-5


@pytest.mark.parametrize("kind", OPEN)
def test_the_result_is_untouched_by_being_watched(watched, networks, kind):
    plain, seen, _calls = watched[kind]
    assert torch.equal(plain.last_hidden_state, seen.last_hidden_state)
    assert networks[kind].config._attn_implementation == "eager" != NAME
    hooks = [hook for module in networks[kind].modules() for hook in module._forward_hooks.values()]
    assert not [hook for hook in hooks if "Taps" in getattr(hook, "__qualname__", "")]


@pytest.mark.parametrize("kind", [kind for kind in OPEN if kind != "gemma2"])
@pytest.mark.parametrize("padded", [False, True])
def test_a_model_on_sdpa_stays_on_it(networks, kind, padded):
    made, given = networks[kind], entered(kind, batch=2)
    if padded and kind != "vit":
        given["attention_mask"] = torch.ones_like(given["input_ids"])
        given["attention_mask"][1, 6:] = 0
    with torch.no_grad():
        own = own_weights(made(**given, output_attentions=True))
        made.set_attn_implementation("sdpa")
        try:
            plain = made(**given).last_hidden_state
            with watch(made) as calls:
                seen = made(**given).last_hidden_state
        finally:
            assert made.config._attn_implementation == "sdpa"
            made.set_attn_implementation("eager")
    assert torch.equal(plain, seen)
    assert len(calls) == (6 if kind in PAIRS else 2)
    for call in calls:
        # The two ways differ in the last bits, which the layers below this one make larger.
        wanted, weights = own[call.kind][call.layer], call.trace()["weights"]
        if padded and call.kind in ("self", "encoder") and kind != "vit":
            wanted, weights = wanted[:, :, :6], weights[:, :, :6]  # queries that are no padding
        torch.testing.assert_close(weights, wanted, atol=1e-4, rtol=0)


@pytest.mark.parametrize("kind", OPEN)
def test_one_head_is_its_slice_of_all_heads(watched, kind):
    _plain, _seen, calls = watched[kind]
    for call in calls:
        whole = call.trace()
        for head in range(call.heads):
            one = call.head(head, sample=1)
            for symbol in ("scores", "weights", "output"):
                torch.testing.assert_close(
                    one[symbol], whole[symbol][1, head], atol=1e-3, rtol=1e-4
                )


@pytest.mark.parametrize("kind", OPEN)
def test_from_the_inputs_only_where_x_times_w_is_what_was_compared(watched, kind):
    _plain, _seen, calls = watched[kind]
    for call in calls:
        traced = call.head_from_inputs(2, sample=1)
        assert (traced is not None) == (kind in FROM_INPUTS)
        if traced is not None:
            compared, _key = traced.step("scores").reads
            torch.testing.assert_close(traced[compared], call.q[1, 2], atol=1e-4, rtol=1e-4)
            assert ("Y" in traced) == (call.kind == "cross")
            wanted = call.trace()
            torch.testing.assert_close(
                traced["weights"], wanted["weights"][1, 2], atol=1e-4, rtol=0
            )
            torch.testing.assert_close(
                traced["output"], wanted["output"][1, 2], atol=1e-3, rtol=1e-4
            )


@pytest.mark.parametrize(
    ("kind", "pairs", "width", "normed"),
    [
        ("llama", "halves", 0, False),
        ("gpt_neox", "halves", 2, False),  # a quarter of 8
        ("glm", "interleaved", 4, False),
        ("qwen3", "halves", 0, True),
    ],
)
def test_how_queries_are_turned(watched, kind, pairs, width, normed):
    call = watched[kind][2][1]
    traced = call.head_from_inputs(3, sample=0)
    assert traced.step("Q_rotated").op == Rotate(pairs, width)
    assert ("Q_normed" in traced) == normed
    assert not torch.equal(traced["Q_rotated"][1:], traced["Q"][1:])
    # The row at position 0 is turned by an angle of 0.
    before = traced["Q_normed" if normed else "Q"]
    torch.testing.assert_close(traced["Q_rotated"][0], before[0], atol=1e-6, rtol=0)


def test_gains_that_are_kept_as_their_distance_from_one():
    """Gemma multiplies by 1 + w: the trace holds the gain itself."""
    import transformers

    sizes = SIZES | {"num_key_value_heads": 2, "head_dim": 8, "sliding_window": 3}
    torch.manual_seed(0)
    made = transformers.Gemma3TextModel(transformers.Gemma3TextConfig(**sizes)).eval()
    norm = made.layers[0].self_attn.q_norm
    norm.weight.data = torch.linspace(-0.5, 0.5, 8)
    with torch.no_grad(), watch(made) as calls:
        made(**entered("llama"))
    traced = calls[0].head_from_inputs(1)
    torch.testing.assert_close(traced["gain_Q"], torch.linspace(0.5, 1.5, 8))
    torch.testing.assert_close(traced["Q_rotated"], calls[0].q[0, 1], atol=1e-5, rtol=1e-4)


def test_what_makes_models_differ_arrives(watched):
    calls = {kind: found[2] for kind, found in watched.items()}
    assert [calls["llama"][0].kv_heads, calls["llama"][0].heads] == [2, 4]
    far = torch.arange(9)[:, None] - torch.arange(9) >= 3
    for call in calls["mistral"]:
        assert call.window == 3
        assert float(call.trace()["weights"][..., far].max()) == 0
    sliding, full = calls["gemma2"]
    assert (sliding.window, full.window) == (3, None)
    assert sliding.softcap == full.softcap == 2.0
    assert sliding.scale == pytest.approx(256**-0.5)  # Gemma 2 does not scale by its head's width
    assert float(full.trace()["weights"][..., far].max()) > 0
    assert "capped" in full.trace()
    encoder, _second, decoder, crossed, *_rest = calls["t5"]
    assert encoder.scale == 1.0
    assert encoder.bias is not None
    assert crossed.bias is None  # all zeros: nothing is added
    assert decoder.causal
    assert decoder.trace()["mask"].tolist() == torch.ones(6, 6).tril().bool().tolist()
    assert decoder.visible().tolist() == [torch.ones(6, 6).tril().bool().tolist()] * 4
    assert calls["mistral"][0].visible()[0].sum(-1).tolist() == [1, 2, *[3] * 7]
    assert {call.kind for call in calls["marian"]} == {"encoder", "decoder", "cross"}
    assert calls["marian"][3].trace()["weights"].shape[-2:] == (6, 9)


# --- padding ----------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama", "mistral", "gemma2"])
def test_padding_leaves_real_rows_as_they_are(networks, kind, side):
    made, given = networks[kind], entered(kind)["input_ids"]
    S, more = given.shape[1], 4
    filler = given.new_zeros(1, more)
    padded = torch.cat([filler, given] if side == "left" else [given, filler], 1)
    mask = torch.cat([filler, given * 0 + 1] if side == "left" else [given * 0 + 1, filler], 1)
    real = slice(more, None) if side == "left" else slice(0, S)
    positions = (mask.cumsum(-1) - 1).clamp_min(0)
    with torch.no_grad():
        with watch(made) as alone:
            made(input_ids=given)
        inputs = {"input_ids": padded, "attention_mask": mask, "position_ids": positions}
        with watch(made) as together:
            made(**inputs)
        own = made(**inputs, output_attentions=True).attentions
    for one, both, wanted in zip(alone, together, own, strict=True):
        weights = both.trace()["weights"]
        torch.testing.assert_close(weights, wanted, atol=1e-5, rtol=0)
        torch.testing.assert_close(
            weights[0, :, real, real], one.trace()["weights"][0], atol=1e-5, rtol=0
        )
        hidden = torch.ones(S + more, dtype=torch.bool)
        hidden[real] = False
        assert float(weights[0, :, real, hidden].max()) == 0


# --- the whole way ----------------------------------------------------------------------------


def model(kind: str, made) -> models.Model:
    return models.Model(kind, word_piece(), made, limit=64, pairs=kind in PAIRS)


def test_a_model_that_cannot_be_watched_is_refused(networks):
    with pytest.raises(core.InputError) as refused:
        read(model("bloom", networks["bloom"]), "the cat")
    assert refused.value.id == "model-closed"


def test_a_reading_holds_tokens_weights_and_vectors(networks):
    reading = read(model("llama", networks["llama"]), "the cat sat")
    assert [token.text for token in reading.tokens] == ["[CLS]", "the", "cat", "sat", "[SEP]"]
    assert reading.deviation <= 1e-5
    assert len(reading.hidden) == 3
    assert torch.equal(reading.hidden[0], reading.embedded)  # Llama's positions come later
    assert [thumb.shape for thumb in reading.thumbs] == [(4, 5, 5)] * 2
    assert reading.thumbs[1] == pytest.approx(reading.weights(1).numpy())
    assert reading.calls[0].own is None


def test_a_text_that_is_too_long_is_refused_or_cut(networks):
    made = model("bert", networks["bert"])
    with pytest.raises(core.InputError) as refused:
        read(made, "the cat " * 40)
    assert refused.value.id == "model-long"
    assert refused.value.facts == {"name": "bert", "got": 82, "most": 64}
    assert len(read(made, "the cat " * 40, cut=True).tokens) == 64
    with pytest.raises(core.InputError, match="at least one word"):
        read(made, "  ")


def test_what_a_tokenizer_cannot_take_is_refused(networks):
    for text in ("\ud800", None, 5):
        with pytest.raises(core.InputError) as refused:
            read(model("bert", networks["bert"]), text)
        assert refused.value.id == "model-run"


def test_an_encoder_and_a_decoder_answer_or_take_a_target():
    made = model("t5", network("t5", "ForConditionalGeneration"))
    typed = read(made, "the cat sat", "on the mat")
    assert [token.text for token in typed.targets] == ["[PAD]", "[CLS]", "on", "the", "mat"]
    cross = next(i for i, call in enumerate(typed.calls) if call.kind == "cross")
    asking, asked = typed.sides(cross)
    assert (asking, asked) == (typed.targets, typed.tokens)
    assert typed.weights(cross).shape == (4, 5, 5)
    written = read(made, "the cat sat")
    assert 1 <= len(written.targets) <= 33


def test_two_visitors_at_once_get_what_one_gets(networks):
    made = model("mistral", networks["mistral"])
    texts = ["the cat sat on the mat", "a dog on the river bank"]
    alone = [models.reading._read(made, text, "", "", False) for text in texts]
    found = {}

    def visit(text):
        found[text] = models.reading._read(made, text, "", "", False)

    threads = [threading.Thread(target=visit, args=(text,)) for text in texts * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for text, wanted in zip(texts, alone, strict=True):
        assert len(found[text].calls) == 2
        assert torch.equal(found[text].calls[1].q, wanted.calls[1].q)


def test_readings_are_kept_up_to_a_number_of_bytes():
    shelf = models.reading._Shelf(most=100, least=1)
    for name in "abc":
        shelf.put(name, name.upper(), 40)
    assert [shelf.get(name) for name in "abc"] == [None, "B", "C"]
    shelf.put("large", 1, 1000)  # alone it may stay: it is being looked at
    assert list(shelf.held) == ["large"]
