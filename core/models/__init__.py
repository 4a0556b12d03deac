"""Models in the wild: any transformers model, its attention captured and its heads measured.

transformers itself is imported by the functions that need it, when they are first called.

>>> from core import models
>>> model = models.load("MiniLM")  # doctest: +SKIP
>>> reading = models.read(model, "the bank of the river")  # doctest: +SKIP
>>> reading.calls[0].head(3)["weights"].shape  # doctest: +SKIP
torch.Size([7, 7])
"""

from core.models.capture import Call, watch
from core.models.contextual import compare, shared
from core.models.facts import Facts
from core.models.loading import Model, hub_allowed, load, minilm, offered, ready
from core.models.reading import Reading, count, read
from core.models.tokens import Token

__all__ = [
    "Call",
    "Facts",
    "Model",
    "Reading",
    "Token",
    "compare",
    "count",
    "hub_allowed",
    "load",
    "minilm",
    "offered",
    "read",
    "ready",
    "shared",
    "watch",
]
