"""The engine: attention computed one step at a time, every intermediate kept and explained.

>>> import core
>>> t = core.run(core.AttentionConfig(S=4, H=6, d_k=3))
>>> t["weights"].sum(-1).allclose(t["weights"].new_ones(4))
True
"""

from importlib import import_module

from core.attention import attend, cross_attention, device, run, self_attention
from core.config import PRESETS, AttentionConfig, preset
from core.errors import InputError, Notice
from core.trace import Trace

__all__ = [
    "PRESETS",
    "AttentionConfig",
    "InputError",
    "Notice",
    "Trace",
    "attend",
    "cross_attention",
    "device",
    "preset",
    "run",
    "self_attention",
]

# Imported when they are first used, as `core.translator.load()` or `core.longmap.attention_map()`.
LATER = ("longmap", "models", "translator")


def __getattr__(name: str):
    if name in LATER:
        return import_module(f"core.{name}")
    raise AttributeError(f"module 'core' has no attribute {name!r}")
