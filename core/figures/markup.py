"""Strings as Plotly reads them. It takes <b>, <a href>, <br>, entities and %{…} in any label for
markup, so whatever a reader typed passes through `safe` first.

>>> safe("<b>%{x} & co</b>")
'&lt;b&gt;%&#123;x} &amp; co&lt;/b&gt;'
"""

from collections.abc import Sequence

LONGEST = 16  # characters of a label


def safe(text: object, most: int | None = None) -> str:
    """A string that Plotly shows as it is, on one line, cut to `most` characters."""
    plain = " ".join(str(text).split())
    if most and len(plain) > most:
        plain = plain[: most - 1] + "…"
    plain = plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return plain.replace("%{", "%&#123;")


def labels(names: Sequence, most: int = LONGEST) -> list[str]:
    """Tick labels of positions: safe, and not endless."""
    return [safe(name, most) for name in names]


def symbol(name: str, transposed: bool = False) -> str:
    """A symbol with its subscript.

    >>> symbol("K_heads", transposed=True)
    'K<sub>heads</sub><sup>⊤</sup>'
    """
    base, _, tail = name.partition("_")
    shown = safe(base) + (f"<sub>{safe(tail)}</sub>" if tail else "")
    return f"{shown}<sup>⊤</sup>" if transposed else shown


def shape(sizes: Sequence[int]) -> str:
    """A shape as one writes it.

    >>> shape((2, 4, 8))
    '(2, 4, 8)'
    """
    return f"({', '.join(map(str, sizes))})"


def width(text: str, size: int = 11) -> int:
    """About how many pixels a label takes; a Chinese character is as wide as it is high.

    >>> width("cat"), width("猫")
    (19, 11)
    """
    entities = ("&amp;", "&lt;", "&gt;", "&#123;")
    for entity in entities:
        text = text.replace(entity, "x")
    return round(sum(size if ord(letter) > 0x2E7F else 0.58 * size for letter in text))
