"""What to compute, as one frozen, hashable value: sizes, tokens, mask, edits; to and from a URL.

>>> config = AttentionConfig(S=4, H=6, d_k=3)
>>> config.d_v, config.T, config.to_url()
(3, 4, {'S': '4', 'H': '6', 'd_k': '3'})
"""

from __future__ import annotations

import base64
import json
import math
import operator
import zlib
from dataclasses import dataclass, fields, replace
from numbers import Real

from core.errors import InputError, require

# What can be counted (see `core.cost`); what can be computed is a matter of memory.
LARGEST = {"B": 16, "S": 1 << 20, "T": 1 << 20, "H": 1 << 15, "h": 128, "g": 128}
LARGEST |= {"d_k": 1024, "d_v": 1024, "H_Y": 1 << 15}
# Number types, with the smallest and largest magnitude each can hold.
RANGES = {
    "float32": (2.0**-149, (2 - 2.0**-23) * 2.0**127),
    "float64": (5e-324, (2 - 2.0**-52) * 2.0**1023),
    "bfloat16": (2.0**-133, (2 - 2.0**-7) * 2.0**127),
    "float16": (2.0**-24, 65504.0),
}
DTYPES = tuple(RANGES)
PAD = "·"  # stands where a sentence of a batch is shorter than the longest
AFFORDABLE = 1 << 24  # score elements that a shared server computes for one visitor
PAIRS = ("halves", "interleaved")  # which entries a rotation turns together
SIZES = tuple(LARGEST)
FURTHEST = 8.0  # standard deviations that no seeded number passes: torch draws within 6
SEEDS = 2**53  # a browser holds whole numbers up to here
EDIT_BYTES = 1 << 18  # what edits in a link may unpack to: all cells of a table
LINK = 96 << 10  # letters of one field; servers refuse addresses of twice as many


@dataclass(frozen=True)
class AttentionConfig:
    """Sizes and choices of one attention computation.

    S, T: query and source length; H: hidden size (row length of X); h, g: query and key/value
    heads; d_k, d_v: widths per head (default H / h, and d_k); B: batch size, None for no batch
    axis. `cross`: queries come from a second sequence Y, H_Y wide (default H). `tokens`,
    `targets`: one tuple of tokens per sample, rows of X and Y; the same token has the same vector
    everywhere. `x`: "seeded" or "example" (the 4 × 6 opening example). `gain`: W entries have
    standard deviation gain / √H. `rotary`: queries and keys are turned by their position, entries
    paired as "halves" or "interleaved" (see `ops.Rotate`). `edits`: ((symbol, index, value), …)
    laid over the inputs. `hidden`: (query, key) pairs that a hand-drawn mask hides. Raises
    InputError naming the sizes and the way out.
    """

    S: int = 4
    H: int = 6
    h: int = 1
    g: int | None = None
    d_k: int | None = None
    d_v: int | None = None
    T: int | None = None
    B: int | None = None
    H_Y: int | None = None
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
    rotary: str | None = None
    project: bool = False
    gain: float = 1.0
    dtype: str = "float32"
    softmax_dtype: str | None = None
    edits: tuple[tuple[str, tuple[int, ...], float], ...] = ()

    def __post_init__(self):
        self._tidy()
        self._take_sizes_from_tokens()
        for name in SIZES:
            self._check_size(name)
        self._fill_defaults()
        self._check_choices()
        self._check_pairs()
        self._check_edits()

    def _tidy(self):
        """Plain numbers and tuples, so that equal configurations are equal, hashable values."""
        for name in (*SIZES, "seed"):
            self._set(**{name: _whole(getattr(self, name))})
        for name in ("scale", "softcap"):
            value = getattr(self, name)
            self._set(**{name: None if value is None else _real(name, value)})
        self._set(gain=_real("gain", self.gain))
        for name in ("tokens", "targets"):
            self._set(**{name: _sentences(name, getattr(self, name))})
        for name in ("window", "lengths", "hidden"):
            self._set(**{name: _tuples(getattr(self, name))})
        self._set(edits=_edits(self.edits))

    def _set(self, **values):
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _take_sizes_from_tokens(self):
        if self.x == "example":
            self._set(S=4, H=6, T=None, cross=False, B=None, tokens=(), targets=())
        source = max(map(len, self.tokens), default=0)
        target = max(map(len, self.targets), default=0)
        if source:
            self._set(**{"T" if self.cross else "S": source})
        if target and self.cross:
            self._set(S=target)
        batches = {len(lines) for lines in (self.tokens, self.targets) if len(lines) > 1}
        if len(batches) > 1:
            sizes = {"got": len(self.targets), "wanted": len(self.tokens)}
            raise InputError("same-batch", left="targets", right="tokens", **sizes)
        if batches:
            self._set(B=batches.pop())

    def _check_size(self, name):
        value = getattr(self, name)
        if value is None and name not in ("S", "H", "h"):
            return
        require(type(value) is int, "not-whole", name=name, got=repr(value)[:40])
        require(value >= 1, "size-least", name=name, got=value, least=1)
        require(value <= LARGEST[name], "size-most", name=name, got=value, most=LARGEST[name])

    def _fill_defaults(self):
        if self.d_k is None:
            require(self.H % self.h == 0, "heads-divide", H=self.H, h=self.h)
            self._set(d_k=self.H // self.h)
        if self.T is None or not self.cross:
            self._set(T=self.S)
        self._set(d_v=self.d_v or self.d_k, g=self.g or self.h)
        self._set(H_Y=(self.H_Y if self.cross else None) or self.H)
        require(self.h % self.g == 0, "groups-divide", h=self.h, g=self.g)

    def _check_choices(self):
        for name, known in (
            ("causal", (False, True, "bottom-right")),
            ("x", ("seeded", "example")),
            ("rotary", (None, *PAIRS)),
            ("dtype", DTYPES),
            ("softmax_dtype", (None, *DTYPES)),
        ):
            value = getattr(self, name)
            listed = ", ".join(map(str, known))
            ok = isinstance(value, str | bool | int | None) and value in known
            require(ok, "unknown-choice", name=name, got=repr(value)[:40], known=listed)
        ok = type(self.seed) is int
        require(ok, "not-whole", name="seed", got=repr(self.seed)[:40])
        require(abs(self.seed) <= SEEDS, "size-most", name="seed", got=self.seed, most=SEEDS)
        require(self.softcap is None or self.softcap > 0, "softcap", got=self.softcap)
        for name in ("scale", "softcap"):
            if getattr(self, name) is not None:
                check_held(name, getattr(self, name), self.dtype)
        for dtype in ("float32", self.dtype):  # made in the first, converted to the second
            check_held("gain", self.gain, dtype, least=0.0, room=FURTHEST)
        if self.rotary:
            require(not self.cross, "rotary-cross")
            require(self.d_k % 2 == 0, "rotary-odd", d_k=self.d_k)

    def _check_pairs(self):
        check_window(self.window)
        ok = isinstance(self.hidden, tuple)
        require(ok, "hidden", got=str(self.hidden)[:40], S=self.S, T=self.T)
        for pair in self.hidden:
            ok = _whole_numbers(pair) and len(pair) == 2
            ok = ok and 0 <= pair[0] < self.S and 0 <= pair[1] < self.T
            require(ok, "hidden", got=str(pair)[:40], S=self.S, T=self.T)
        if self.lengths is not None:
            ok = _whole_numbers(self.lengths) and len(self.lengths) == (self.B or 1)
            ok = ok and all(0 <= n <= self.T for n in self.lengths)
            require(ok, "lengths", got=str(self.lengths)[:40], T=self.T, B=self.B or 1)

    def _check_edits(self):
        shapes = self.input_shapes()
        for symbol, index, value in self.edits:
            require(symbol in shapes, "edit-symbol", got=symbol[:40], known=", ".join(shapes))
            shape = shapes[symbol]
            ok = len(index) == len(shape)
            ok = ok and all(0 <= i < n for i, n in zip(index, shape, strict=True))
            require(ok, "edit-cell", symbol=symbol, shape=shape, index=index)
            for dtype in ("float32", self.dtype):  # made in the first, converted to the second
                check_held(f"{symbol}{list(index)}", value, dtype, least=0.0)

    def sizes(self) -> dict[str, int]:
        """Every named dimension with its size."""
        named = {n: getattr(self, n) for n in ("S", "T", "H", "H_Y", "h", "g", "d_k", "d_v")}
        return named | {"B": self.B or 1, "r": self.h // self.g}

    def input_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the input tensors, by symbol, in the order of the recipe."""
        lead = () if self.B is None else (self.B,)
        shapes = {"Y": (*lead, self.S, self.H_Y)} if self.cross else {}
        shapes |= {
            "X": (*lead, self.T, self.H),
            "W_Q": (self.H_Y, self.h * self.d_k),
            "W_K": (self.H, self.g * self.d_k),
            "W_V": (self.H, self.g * self.d_v),
        }
        return shapes | ({"W_O": (self.h * self.d_v, self.H_Y)} if self.project else {})

    def check_affordable(self, most: int = AFFORDABLE) -> None:
        """Raise InputError if scores or an input exceed `most` elements: a server's own limit."""
        cells = (self.B or 1) * self.h * self.S * self.T
        require(cells <= most, "too-large", cells=f"{cells:,}", most=f"{most:,}")
        for name, shape in self.input_shapes().items():
            cells, facts = math.prod(shape), {"name": name, "shape": shape}
            require(cells <= most, "too-large-input", cells=f"{cells:,}", most=f"{most:,}", **facts)

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
        plain["H_Y"] = None if self.H_Y == self.H else self.H_Y
        plain["T"] = self.T if self.cross and self.T != self.S else None
        if self.x == "example":
            plain["tokens"] = ()
        return plain

    def to_url(self) -> dict[str, str]:
        """Only what differs from the defaults, as short strings; without what is `unlinked`."""
        plain, shown, long = self._given(), {}, self.unlinked()
        for field in fields(self):
            value = field.default if field.name in long else plain[field.name]
            if value == field.default and field.name not in ("S", "H"):
                continue
            if value is not None:
                shown[field.name] = _write(field.name, value)
        return shown

    def unlinked(self) -> list[str]:
        """Fields that no link can hold: longer than one is read, or than an address may be."""
        return [name for name in _PACKED if not _fits_link(name, getattr(self, name))]

    @classmethod
    def from_url(
        cls, values: dict[str, str], most: int = AFFORDABLE
    ) -> tuple[AttentionConfig, list[InputError]]:
        """Read a link. What cannot be read is left at its default and reported, never raised.

        The result is affordable (see `check_affordable`): links are opened on shared servers.
        """
        known, problems = {f.name for f in fields(cls)}, []
        given = {}
        for name, text in values.items():
            if name not in known:
                continue
            try:
                given[name] = _read(name, text)
            except (ValueError, TypeError, KeyError, RecursionError, zlib.error):
                problems.append(InputError("link-value", name=name, got=str(text)[:40]))
        chosen, refused = _possible(given, most)
        return chosen, problems + refused


def _possible(given: dict, most: int) -> tuple[AttentionConfig, list[InputError]]:
    """A configuration of as many of these fields as go together, and why others did not."""
    chosen = _tried(given, most)
    if not isinstance(chosen, InputError):
        return chosen, []
    for name in given:  # the one that spoils the rest, if there is one
        rest = _tried({other: value for other, value in given.items() if other != name}, most)
        if not isinstance(rest, InputError):
            return rest, [chosen]
    kept, refused = {}, []
    for name, value in given.items():
        more = _tried(kept | {name: value}, most)
        if isinstance(more, InputError):
            refused.append(more)
        else:
            kept[name] = value
    return AttentionConfig(**kept), refused


def _tried(given: dict, most: int) -> AttentionConfig | InputError:
    try:
        chosen = AttentionConfig(**given)
        chosen.check_affordable(most)
        return chosen
    except InputError as problem:
        return problem


# --- fields as plain values -------------------------------------------------------------------


def _whole(value):
    """A whole number of any kind (NumPy's too) as int; anything else as it is."""
    if isinstance(value, bool):
        return value
    try:
        return operator.index(value)
    except TypeError:
        return value


def _real(name: str, value) -> float:
    """A finite number as float."""
    try:
        ok = isinstance(value, Real) and math.isfinite(value)
    except OverflowError:
        ok = False
    require(ok, "not-a-number", name=name, got=repr(value)[:40])
    return float(value)


def _tuples(value):
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else _whole(value)


def _whole_numbers(value) -> bool:
    return isinstance(value, tuple) and all(type(number) is int for number in value)


def _sentences(name: str, value) -> tuple[tuple[str, ...], ...]:
    """One tuple of tokens per sample; a flat one is one sample."""
    value = _tuples(value)
    if isinstance(value, tuple) and value and all(isinstance(token, str) for token in value):
        value = (value,)
    ok = isinstance(value, tuple) and all(isinstance(line, tuple) for line in value)
    ok = ok and all(_text(token) for line in value for token in line)
    require(ok, "tokens", name=name, got=ascii(value)[:40])
    return value


def _text(token) -> bool:
    """Whether a token can be written as UTF-8: half a surrogate pair cannot."""
    return isinstance(token, str) and not any("\ud800" <= letter <= "\udfff" for letter in token)


def _edits(value) -> tuple[tuple[str, tuple[int, ...], float], ...]:
    edits = _tuples(value)
    require(isinstance(edits, tuple), "edit", got=repr(value)[:40])
    for edit in edits:
        ok = isinstance(edit, tuple) and len(edit) == 3
        ok = ok and isinstance(edit[0], str) and _whole_numbers(edit[1])
        require(ok, "edit", got=ascii(edit)[:40])
    return tuple((name, index, _real(name, number)) for name, index, number in edits)


def check_window(window) -> None:
    """Raise InputError unless `window` is None or two whole numbers ≥ −1."""
    if window is None:
        return
    ok = isinstance(window, tuple | list) and len(window) == 2
    ok = ok and all(type(side) is int and side >= -1 for side in window)
    require(ok, "window", got=str(window)[:40])


def check_held(
    name: str, value: float, dtype: str, least: float | None = None, room: float = 1.0
) -> None:
    """Raise InputError if a type would make a finite number infinite, or 0 of another one.

    `room`: what it will yet be multiplied with.
    """
    smallest, most = RANGES[dtype]
    most /= room
    least = smallest if least is None else least
    ok = value == 0 or least <= abs(value) <= most
    require(ok, "out-of-range", name=name, got=value, dtype=dtype, most=f"{most:.3g}")


# --- the link ---------------------------------------------------------------------------------

_PACKED = ("tokens", "targets", "edits", "hidden")
_NUMBERS = ("scale", "softcap", "gain")
_FLAGS = ("cross", "project")
_WORDS = ("x", "rotary", "dtype", "softmax_dtype")
_PAIRS = ("window", "lengths")


def _write(name, value) -> str:
    if name in _PACKED:
        return base64.urlsafe_b64encode(zlib.compress(_plain(value), 9)).decode().rstrip("=")
    if name in _PAIRS:
        return ",".join(map(str, value))
    if isinstance(value, bool):
        return "1" if value else "0"
    return repr(value) if isinstance(value, float) else str(value)


def _plain(value) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _fits_link(name, value) -> bool:
    return not value or (len(_plain(value)) <= EDIT_BYTES and len(_write(name, value)) <= LINK)


def _read(name, text):
    if name in _PACKED:
        return json.loads(_unpack(text))
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


# --- presets ----------------------------------------------------------------------------------

PRESETS = {
    "example": AttentionConfig(x="example", d_k=3, gain=2.0),
    "two-heads": AttentionConfig(x="example", h=2, d_k=3, project=True, gain=2.0),
    "causal": AttentionConfig(x="example", d_k=3, causal=True, gain=2.0),
    "grouped": AttentionConfig(S=5, H=8, h=4, g=2, project=True, gain=2.0),
    "rotary": AttentionConfig(S=5, H=8, h=2, rotary="halves", gain=2.0),
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
    ok = isinstance(name, str) and name in PRESETS
    require(ok, "unknown-choice", name="preset", got=str(name)[:40], known=", ".join(PRESETS))
    return replace(PRESETS[name])
