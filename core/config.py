"""What to compute, as one frozen, hashable value: sizes, tokens, mask, edits; to and from a URL.

>>> config = AttentionConfig(S=4, H=6, d_k=3)
>>> config.d_v, config.T, config.to_url()
(3, 4, {'S': '4', 'H': '6', 'd_k': '3'})
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from dataclasses import dataclass, fields, replace

from core.errors import InputError, require

LARGEST = {"B": 16, "S": 4096, "T": 4096, "H": 4096, "h": 64, "g": 64, "d_k": 1024, "d_v": 1024}
DTYPES = ("float32", "float64", "bfloat16", "float16")
PAD = "·"  # stands where a sentence of a batch is shorter than the longest
AFFORDABLE = 1 << 24  # score elements that a shared server computes for one visitor
EDIT_BYTES = 65536  # what edits in a link may unpack to


@dataclass(frozen=True)
class AttentionConfig:
    """Sizes and choices of one attention computation.

    S, T: query and source length; H: hidden size (row length of X); h, g: query and key/value
    heads; d_k, d_v: widths per head (default H / h, and d_k); B: batch size, None for no batch
    axis. `cross`: queries come from a second sequence Y. `tokens`, `targets`: one tuple of tokens
    per sample, rows of X and Y; the same token has the same vector everywhere. `x`: "seeded" or
    "example" (the 4 × 6 opening example). `gain`: W entries have standard deviation gain / √H.
    `edits`: ((symbol, index, value), …) laid over the inputs. `hidden`: (query, key) pairs that a
    hand-drawn mask hides. Raises InputError naming the sizes and the way out.
    """

    S: int = 4
    H: int = 6
    h: int = 1
    g: int | None = None
    d_k: int | None = None
    d_v: int | None = None
    T: int | None = None
    B: int | None = None
    seed: int = 0
    cross: bool = False
    x: str = "seeded"
    tokens: tuple[tuple[str, ...], ...] = ()
    targets: tuple[tuple[str, ...], ...] = ()
    causal: bool | str = False
    window: tuple[int, int] | None = None
    lengths: tuple[int, ...] | None = None
    hidden: tuple[tuple[int, int], ...] = ()
    scale: float | None = None
    softcap: float | None = None
    project: bool = False
    gain: float = 1.0
    dtype: str = "float32"
    softmax_dtype: str | None = None
    edits: tuple[tuple[str, tuple[int, ...], float], ...] = ()

    def __post_init__(self):
        self._take_sizes_from_tokens()
        for name in ("S", "H", "h", "T", "B", "g", "d_k", "d_v"):
            self._check_size(name)
        self._fill_defaults()
        self._check_choices()

    def _set(self, **values):
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _take_sizes_from_tokens(self):
        if self.x == "example":
            self._set(S=4, H=6, T=None, cross=False, B=None, tokens=())
        source = max(map(len, self.tokens), default=0)
        target = max(map(len, self.targets), default=0)
        if source:
            self._set(**{"T" if self.cross else "S": source})
        if target and self.cross:
            self._set(S=target)
        if len(self.tokens) > 1:
            self._set(B=len(self.tokens))

    def _check_size(self, name):
        value = getattr(self, name)
        if value is None:
            return
        ok = isinstance(value, int) and not isinstance(value, bool)
        require(ok, "not-a-number", name=name, got=repr(value))
        require(value >= 1, "size-least", name=name, got=value, least=1)
        require(value <= LARGEST[name], "size-most", name=name, got=value, most=LARGEST[name])

    def _fill_defaults(self):
        if self.d_k is None:
            require(self.H % self.h == 0, "heads-divide", H=self.H, h=self.h)
            self._set(d_k=self.H // self.h)
        if self.T is None or not self.cross:
            self._set(T=self.S)
        self._set(d_v=self.d_v or self.d_k, g=self.g or self.h)
        require(self.h % self.g == 0, "groups-divide", h=self.h, g=self.g)

    def _check_choices(self):
        for name, known in (
            ("causal", (False, True, "bottom-right")),
            ("x", ("seeded", "example")),
            ("dtype", DTYPES),
            ("softmax_dtype", (None, *DTYPES)),
        ):
            value = getattr(self, name)
            listed = ", ".join(map(str, known))
            require(value in known, "unknown-choice", name=name, got=repr(value), known=listed)
        for name in ("scale", "softcap", "gain"):
            value = getattr(self, name)
            ok = value is None or (isinstance(value, int | float) and math.isfinite(value))
            require(ok, "not-a-number", name=name, got=repr(value))
        require(self.softcap is None or self.softcap > 0, "softcap", got=self.softcap)
        check_window(self.window)
        for i, j in self.hidden:
            ok = 0 <= i < self.S and 0 <= j < self.T
            require(ok, "hidden", got=f"({i}, {j})", S=self.S, T=self.T)
        if self.lengths is not None:
            ok = len(self.lengths) == (self.B or 1) and all(0 <= n <= self.T for n in self.lengths)
            require(ok, "lengths", got=list(self.lengths), T=self.T, B=self.B or 1)

    def sizes(self) -> dict[str, int]:
        """Every named dimension with its size."""
        named = {n: getattr(self, n) for n in ("S", "T", "H", "h", "g", "d_k", "d_v")}
        return named | {"B": self.B or 1, "r": self.h // self.g}

    def input_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the input tensors, by symbol, in the order of the recipe."""
        lead = () if self.B is None else (self.B,)
        shapes = {"Y": (*lead, self.S, self.H)} if self.cross else {}
        shapes |= {
            "X": (*lead, self.T, self.H),
            "W_Q": (self.H, self.h * self.d_k),
            "W_K": (self.H, self.g * self.d_k),
            "W_V": (self.H, self.g * self.d_v),
        }
        return shapes | ({"W_O": (self.h * self.d_v, self.H)} if self.project else {})

    def check_affordable(self, most: int = AFFORDABLE) -> None:
        """Raise InputError if the scores have more than `most` elements: a server's own limit."""
        cells = (self.B or 1) * self.h * self.S * self.T
        require(cells <= most, "too-large", cells=f"{cells:,}", most=f"{most:,}")

    def changed(self, **values) -> AttentionConfig:
        """A copy with some fields changed; widths and lengths that followed others follow again."""
        return AttentionConfig(**(self._given() | values))

    def _given(self) -> dict:
        """The fields without those that merely follow from others."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        if self.H % self.h == 0 and self.d_k == self.H // self.h:
            plain["d_k"] = None
        plain["d_v"] = None if self.d_v == self.d_k else self.d_v
        plain["g"] = None if self.g == self.h else self.g
        plain["T"] = self.T if self.cross and self.T != self.S else None
        if self.x == "example":
            plain["tokens"] = ()
        return plain

    def to_url(self) -> dict[str, str]:
        """Only what differs from the defaults, as short strings."""
        plain, shown = self._given(), {}
        for field in fields(self):
            value = plain[field.name]
            if value == field.default and field.name not in ("S", "H"):
                continue
            if value is not None:
                shown[field.name] = _write(field.name, value)
        return shown

    @classmethod
    def from_url(cls, values: dict[str, str]) -> tuple[AttentionConfig, list[InputError]]:
        """Read a link. What cannot be read is left at its default and reported, never raised."""
        known, problems = {f.name for f in fields(cls)}, []
        given = {}
        for name, text in values.items():
            if name not in known:
                continue
            try:
                given[name] = _read(name, text)
            except (ValueError, TypeError, KeyError, RecursionError, zlib.error):
                problems.append(InputError("link-value", name=name, got=text[:40]))
        try:
            return cls(**given), problems
        except InputError as problem:
            return cls(), [*problems, problem]
        except (TypeError, ValueError):
            return cls(), [*problems, InputError("link-value", name="edits", got="…")]


def check_window(window) -> None:
    """Raise InputError unless `window` is None or two whole numbers ≥ −1."""
    if window is None:
        return
    ok = isinstance(window, tuple | list) and len(window) == 2
    ok = ok and all(type(side) is int and side >= -1 for side in window)
    require(ok, "window", got=window)


# --- the link ---------------------------------------------------------------------------------

_PACKED = ("tokens", "targets", "edits", "hidden")
_NUMBERS = ("scale", "softcap", "gain")
_FLAGS = ("cross", "project")
_WORDS = ("x", "dtype", "softmax_dtype")
_PAIRS = ("window", "lengths")


def _write(name, value) -> str:
    if name in _PACKED:
        plain = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(zlib.compress(plain, 9)).decode().rstrip("=")
    if name in _PAIRS:
        return ",".join(map(str, value))
    if isinstance(value, bool):
        return "1" if value else "0"
    return repr(value) if isinstance(value, float) else str(value)


def _read(name, text):
    if name in _PACKED:
        return _tuples(json.loads(_unpack(text)))
    if name in _PAIRS:
        return tuple(int(part) for part in text.split(","))
    if name in _NUMBERS:
        return float(text)
    if name in _FLAGS:
        return {"1": True, "0": False}[text]
    if name == "causal":
        return {"1": True, "0": False, "bottom-right": "bottom-right"}[text]
    return text if name in _WORDS else int(text)


def _unpack(text: str) -> bytes:
    """Undo the packing of `_write`, refusing what would unpack to more than EDIT_BYTES."""
    packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    inflate = zlib.decompressobj()
    plain = inflate.decompress(packed, EDIT_BYTES)
    if inflate.unconsumed_tail:
        raise ValueError("too long")
    return plain


def _tuples(value):
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


# --- presets ----------------------------------------------------------------------------------

PRESETS = {
    "example": AttentionConfig(x="example", d_k=3, gain=2.0),
    "two-heads": AttentionConfig(x="example", h=2, d_k=3, project=True, gain=2.0),
    "causal": AttentionConfig(x="example", d_k=3, causal=True, gain=2.0),
    "grouped": AttentionConfig(S=5, H=8, h=4, g=2, project=True, gain=2.0),
    "cross": AttentionConfig(S=3, T=5, H=6, d_k=3, cross=True, gain=2.0),
    "transformer": AttentionConfig(S=10, H=512, h=8, project=True),
    "bert-base": AttentionConfig(S=16, H=768, h=12, project=True),
    "gpt2-small": AttentionConfig(S=128, H=768, h=12, project=True, causal=True),
}


def preset(name: str) -> AttentionConfig:
    """A ready configuration by its name (see PRESETS).

    >>> preset("gpt2-small").d_k
    64
    """
    require(name in PRESETS, "unknown-choice", name="preset", got=name, known=", ".join(PRESETS))
    return replace(PRESETS[name])
