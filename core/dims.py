"""The named dimensions of attention: what each letter means and the colour it wears on screen.

>>> DIMS["S"].name, DIMS["S"].colour
('sequence length', '#3b82f6')
"""

from typing import NamedTuple


class Dim(NamedTuple):
    """One named dimension: symbol, English name (the msgid of its label), colour on both themes."""

    symbol: str
    name: str
    colour: str


# Mid-tones, so that one colour reads on a light and on a dark ground.
DIMS = {
    dim.symbol: dim
    for dim in (
        Dim("B", "batch size", "#64748b"),
        Dim("S", "sequence length", "#3b82f6"),
        Dim("T", "source length", "#0d9488"),
        Dim("P", "past length", "#0891b2"),
        Dim("N", "new length", "#0d9488"),
        Dim("H", "hidden size", "#a855f7"),
        Dim("H_Y", "hidden size of Y", "#9333ea"),
        Dim("E", "projected width", "#c026d3"),
        Dim("h", "query heads", "#d97706"),
        Dim("g", "key/value heads", "#b45309"),
        Dim("r", "query heads per key/value head", "#ca8a04"),
        Dim("d_k", "query and key width", "#16a34a"),
        Dim("d_r", "rotated width", "#65a30d"),
        Dim("d_v", "value width", "#e11d48"),
    )
}
