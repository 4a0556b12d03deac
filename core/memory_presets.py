"""Chains worth opening, with the names of their dimensions where they have some.

>>> PRESETS["attention"].symbols[4], PRESETS["attention"].dims[4]
('Kᵀ', ('B', 'g', 'd_k', 'S'))
"""

from typing import NamedTuple

from core.memory_chain import Chain, Shape, read_chain


class Preset(NamedTuple):
    """A shape and a chain; per stage the names of its dims and its symbol, both may be missing."""

    shape: Shape
    chain: Chain
    dims: tuple[tuple[str, ...], ...] = ()
    symbols: tuple[str, ...] = ()


def _attention() -> Preset:
    """K on its way through grouped-query attention: B=1, S=3, H=6, g=2, r=2, h=4, d_k=4.

    All sizes but g = r differ, so that each can be followed. K is transposed for Q·Kᵀ and back; the
    merge at the end is the one of the output, which has the shape of the repeated keys.
    """
    rows = (
        ("X", "B S H", ""),
        ("K", "B S g*d_k", "matmul(8)"),
        ("K_split", "B S g d_k", "view(1,3,2,4)"),
        ("K_heads", "B g S d_k", "transpose(1,2)"),
        ("Kᵀ", "B g d_k S", "transpose(2,3)"),
        ("K_heads", "B g S d_k", "transpose(2,3)"),
        ("", "B g 1 S d_k", "unsqueeze(2)"),
        ("", "B g r S d_k", "expand(1,2,2,3,4)"),
        ("K_repeat", "B h S d_k", "reshape(1,4,3,4)"),
        ("swapped", "B S h d_k", "transpose(1,2)"),
        ("swapped", "B S h d_k", "contiguous()"),
        ("merged", "B S h*d_k", "view(1,3,16)"),
    )
    chain = read_chain(".".join(call for _, _, call in rows[1:]))
    dims = tuple(tuple(names.split()) for _, names, _ in rows)
    return Preset((1, 3, 6), chain, dims, tuple(symbol for symbol, _, _ in rows))


PRESETS = {
    "transpose": Preset((1, 4, 2, 3), read_chain("transpose(1,2).contiguous()")),
    "refused": Preset((1, 4, 2, 3), read_chain("transpose(1,2).view(1,2,12)")),
    "attention": _attention(),
    "size-one": Preset((4, 1, 6), read_chain("transpose(0,1).view(24)")),
    "expand": Preset((3, 1), read_chain("expand(3,4).contiguous()")),
    "flip": Preset((3, 4), read_chain("flip(1)")),
    "slice": Preset((4, 6), read_chain("slice(1,1,6,2).narrow(0,1,2)")),
}


def names(shape: Shape, chain: Chain, stage: int) -> tuple[tuple[str, ...], str]:
    """Dims and symbol of a stage, if all that leads to it is the beginning of a preset.

    >>> names((1, 3, 6), read_chain("matmul(8).t()"), 1)
    (('B', 'S', 'g*d_k'), 'K')
    >>> names((1, 3, 6), read_chain("matmul(9)"), 1)
    ((), '')
    """
    for preset in PRESETS.values():
        if preset.dims and (shape, chain[:stage]) == (preset.shape, preset.chain[:stage]):
            return preset.dims[stage], preset.symbols[stage]
    return (), ""
