"""Where X, Y and the W come from: numbers that anyone can make again, and the line to do so.

Every tensor has its own generator, seeded from the seed and its name, and is drawn on the CPU in
float32: changing one size leaves the other tensors alone, and every device sees the same numbers.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

import torch

from core.config import PAD, AttentionConfig

EXAMPLE = (
    (0.05, 0.11, 0.42, 0.03, 0.89, 0.59),
    (0.63, 0.06, 0.25, 0.44, 0.56, 0.76),
    (0.32, 0.72, 0.77, 0.19, 0.43, 0.64),
    (0.93, 0.80, 0.29, 0.82, 0.80, 0.08),
)


class Made(NamedTuple):
    """A tensor together with the Python expression that makes it."""

    tensor: torch.Tensor
    lines: str


def key(seed: int, name: str) -> int:
    """The generator seed of one named tensor."""
    return zlib.crc32(f"{seed}:{name}".encode())


def normal(shape: tuple[int, ...], seed: int, name: str, std: float = 1.0) -> Made:
    """Independent N(0, std²) entries.

    >>> normal((2, 2), 0, "W_Q").tensor.shape
    torch.Size([2, 2])
    """
    number = key(seed, name)
    drawn = torch.randn(*shape, generator=torch.Generator().manual_seed(number))
    sides = ", ".join(map(str, shape))
    lines = f"torch.randn({sides}, generator=torch.Generator().manual_seed({number}))"
    return Made(drawn * std, f"{lines} * {std!r}")


def example() -> Made:
    """The opening example: X with S = 4, H = 6."""
    rows = ",\n    ".join(str(list(row)) for row in EXAMPLE)
    return Made(torch.tensor(EXAMPLE), f"torch.tensor([\n    {rows},\n])")


def token_rows(tokens: tuple[tuple[str, ...], ...], H: int, seed: int, batch: bool) -> Made:
    """One row per token, (B, S, H) or (S, H); the same token is the same row in every sentence."""
    longest = max(map(len, tokens))
    padded = [list(line) + [PAD] * (longest - len(line)) for line in tokens]
    numbers = [[key(seed, f"token:{token}") for token in line] for line in padded]
    row = {
        n: torch.randn(H, generator=torch.Generator().manual_seed(n))
        for n in {n for line in numbers for n in line}
    }
    stacked = torch.stack([torch.stack([row[n] for n in line]) for line in numbers])
    draw = f"torch.randn({H}, generator=torch.Generator().manual_seed(n))"
    seeds = numbers if batch else numbers[0]
    if batch:
        lines = f"torch.stack([torch.stack([{draw} for n in line]) for line in {seeds}])"
    else:
        lines = f"torch.stack([{draw} for n in {seeds}])"
    return Made(stacked if batch else stacked[0], lines)


def rows(config: AttentionConfig, symbol: str) -> Made:
    """X or Y of a configuration."""
    length = config.T if symbol == "X" else config.S
    tokens = config.tokens if symbol == "X" else config.targets
    width = config.H if symbol == "X" else config.H_Y
    batch = config.B is not None
    if symbol == "X" and config.x == "example":
        return example()
    if tokens and any(tokens):
        tokens = tokens if len(tokens) > 1 else tokens * (config.B or 1)
        return token_rows(tokens, width, config.seed, batch)
    shape = (config.B, length, width) if batch else (length, width)
    return normal(shape, config.seed, symbol)


def edited(made: Made, symbol: str, config: AttentionConfig) -> Made:
    """Lay the edits of this symbol over a tensor; the code says so too."""
    changes = [(index, value) for name, index, value in config.edits if name == symbol]
    if not changes:
        return made
    tensor, lines = made.tensor.clone(), made.lines
    for index, value in changes:
        tensor[index] = value
        lines += f"\n{symbol}[{', '.join(map(str, index))}] = {value!r}"
    return Made(tensor, lines)


def make(config: AttentionConfig) -> dict[str, Made]:
    """Every input tensor of a configuration, in the order of its recipe."""
    made = {}
    for symbol, shape in config.input_shapes().items():
        if symbol in "XY":
            made[symbol] = rows(config, symbol)
        else:
            made[symbol] = normal(shape, config.seed, symbol, config.gain * shape[0] ** -0.5)
    return {symbol: edited(value, symbol, config) for symbol, value in made.items()}


def angles(config: AttentionConfig) -> dict[str, Made]:
    """cos and sin (S, d_k) of rotary positions: pair n of d_k/2 turns 10000^(−2n/d_k) a position.

    >>> angles(AttentionConfig(S=2, H=4, rotary="halves"))["cos"].tensor[1, 0]
    tensor(0.5403)
    """
    if not config.rotary:
        return {}
    S, d_k = config.S, config.d_k
    pace = 10000.0 ** (-torch.arange(0, d_k, 2) / d_k)
    turns = torch.outer(torch.arange(float(S)), pace)
    lines = f"torch.outer(torch.arange({S}.0), 10000.0 ** (-torch.arange(0, {d_k}, 2) / {d_k}))"
    if config.rotary == "halves":
        turns, lines = turns.repeat(1, 2), f"{lines}.repeat(1, 2)"
    else:
        turns, lines = turns.repeat_interleave(2, 1), f"{lines}.repeat_interleave(2, 1)"
    return {"cos": Made(turns.cos(), f"{lines}.cos()"), "sin": Made(turns.sin(), f"{lines}.sin()")}


def split_sentence(text: str) -> tuple[str, ...]:
    """Words at spaces; a Chinese, Japanese or Korean character is a token of its own.

    >>> split_sentence("猫坐在 the mat!")
    ('猫', '坐', '在', 'the', 'mat!')
    """
    tokens, word = [], ""
    for letter in text:
        if letter.isspace() or _is_cjk(letter):
            tokens += [word] if word else []
            tokens += [] if letter.isspace() else [letter]
            word = ""
        else:
            word += letter
    return tuple(tokens + ([word] if word else []))


def _is_cjk(letter: str) -> bool:
    code = ord(letter)
    return (
        0x3400 <= code <= 0x9FFF
        or 0xF900 <= code <= 0xFAFF
        or 0x3040 <= code <= 0x30FF
        or 0xAC00 <= code <= 0xD7AF
        or 0x20000 <= code <= 0x323AF
    )
