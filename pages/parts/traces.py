"""Traces and their descriptions, computed once and shared by all visitors.

Keyed on the frozen configuration. A small trace takes kilobytes, a large one a hundred megabytes,
so the two kinds have caches of their own length.
"""

from functools import lru_cache

import numpy as np

import core
from core import AttentionConfig, Trace
from core.config import PAD
from core.manifest import manifest
from parts.text import _

LARGE = 1 << 20  # score elements

_small = lru_cache(maxsize=256)(core.run)
_large = lru_cache(maxsize=3)(core.run)


def trace(config: AttentionConfig) -> Trace:
    """The trace of a configuration, kept."""
    cells = (config.B or 1) * config.h * config.S * config.T
    return (_large if cells > LARGE else _small)(config)


@lru_cache(maxsize=256)
def gradient(config: AttentionConfig, symbol: str, index: tuple[int, ...]) -> dict:
    """The derivatives of one element with respect to every tensor of the trace."""
    return trace(config).gradient(symbol, index)


def described(config: AttentionConfig, pick=(), target=None) -> tuple[dict, np.ndarray]:
    """The manifest and numbers for the browser, in the reader's language.

    `pick`: (("B", 0), ("h", 1)); `target`: (symbol, index) to see its gradient instead of values.
    """
    plain, values = _described(config, tuple(pick), target)
    dims = {n: facts | {"name": _(facts["name"])} for n, facts in plain["dims"].items()}
    return plain | {"dims": dims}, values


@lru_cache(maxsize=64)
def _described(config, pick, target):
    shown = {"labels": labels(config), "target": target}
    if target:
        shown["values"] = gradient(config, *target)
    return manifest(trace(config), dict(pick), **shown)


def sample_labels(config: AttentionConfig, sample: int = 0) -> dict[str, list[str]]:
    """What the positions of S and T are called in one sample."""
    named = labels(config)
    return {d: names[sample] if isinstance(names[0], list) else names for d, names in named.items()}


def labels(config: AttentionConfig) -> dict[str, list]:
    """What the positions of S and T are called: the tokens, per sample where there is a batch."""
    if not config.tokens and not config.targets:
        return {}
    source, target = _padded(config.tokens, config), _padded(config.targets, config)
    if not config.cross:
        return {"S": source, "T": source}
    named = {"T": source, "S": target}
    return {dim: names for dim, names in named.items() if names}


def _padded(lines, config):
    if not lines:
        return []
    longest = max(map(len, lines))
    padded = [list(line) + [PAD] * (longest - len(line)) for line in lines]
    if config.B is None:
        return padded[0]
    return padded if len(padded) > 1 else padded * config.B
