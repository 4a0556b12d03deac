"""The engine: attention computed one step at a time, every intermediate kept and explained.

>>> import core
>>> t = core.run(core.AttentionConfig(S=4, H=6, d_k=3))
>>> t["weights"].sum(-1).allclose(t["weights"].new_ones(4))
True
"""

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
