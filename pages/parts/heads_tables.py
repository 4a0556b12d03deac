"""Tables of the Heads page: real HTML tables whose cells wear the colour of a head or a token.

>>> hue(0), hue(1)
(205.0, 342.508)
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import streamlit as st

STYLE = Path(__file__).parents[2] / "assets/heads/heads.css"


def hue(place: int) -> float:
    """The hue of head or token number `place`, as in assets/microscope/colour.js."""
    return round((place * 137.508 + 205) % 360, 3)


@dataclass(frozen=True)
class Cell:
    """One table cell: text, and optionally the head or token it belongs to, or a share 0…1 of its
    colour. `span` columns wide; `code` is set in code type."""

    text: str
    place: int | None = None
    share: float | None = None
    span: int = 1
    code: bool = False

    def html(self) -> str:
        inner = escape(self.text)
        inner = f"<code>{inner}</code>" if self.code else inner
        style = "" if self.place is None else f"--hue: {hue(self.place)}"
        style = f"--share: {self.share:.3f}" if self.share is not None else style
        style = f' style="{style}"' if style else ""
        wide = f' colspan="{self.span}"' if self.span > 1 else ""
        return f"<td{style}{wide}{_kind(self)}>{inner}</td>"


NUMBER = re.compile(r"[−-]?[\d.,]+(e[−-]?\d+)?|−?∞|NaN")


def _kind(cell: Cell) -> str:
    """Text to the left, marked cells in the middle, numbers to the right."""
    words = cell.code or not NUMBER.fullmatch(cell.text)
    kind = "mid" if cell.place is not None else "text" if words else ""
    return f' class="{kind}"' if kind else ""


def table(
    caption: str,
    head: Sequence[str],
    rows: Iterable[tuple[str, Sequence[Cell | str]]],
    *,
    current: int | None = None,
    rule: int | None = None,
    name: str = "",
) -> str:
    """A table as HTML: `head` names the columns (the first one stands over the row names).

    Row `current` is marked, row `rule` has a line above. `name` is a hook for tests.
    """
    heads = "".join(f'<th scope="col">{escape(text)}</th>' for text in head)
    body = ""
    for place, (label, cells) in enumerate(rows):
        marks = ' aria-current="step"' if place == current else ""
        marks += ' class="rule"' if place == rule else ""
        made = "".join((Cell(c) if isinstance(c, str) else c).html() for c in cells)
        body += f'<tr{marks}><th scope="row">{_label(label)}</th>{made}</tr>'
    return (
        f'<div class="heads-table" role="region" tabindex="0" aria-label="{escape(caption)}"'
        f' data-table="{escape(name)}"><table><caption><span>{escape(caption)}</span></caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _label(text: str) -> str:
    """A row name; between backticks it is set in code type."""
    code = len(text) > 2 and text[0] == text[-1] == "`"
    return f"<code>{escape(text[1:-1])}</code>" if code else escape(text)


def head_map(caption: str, labels: tuple[str, str], short: tuple[str, str], owners) -> str:
    """Query heads in a row, under them the key/value head that each reads, as wide as its group.

    `owners[i]` is the key/value head of query head i; `labels` name the two rows.
    """
    asking = "".join(Cell(f"{short[0]}{i + 1}", g).html() for i, g in enumerate(owners))
    groups = {g: owners.count(g) for g in owners}
    held = "".join(Cell(f"{short[1]}{g + 1}", g, span=wide).html() for g, wide in groups.items())
    rows = "".join(
        f'<tr><th scope="row">{escape(label)}</th>{cells}</tr>'
        for label, cells in zip(labels, (asking, held), strict=True)
    )
    return (
        f'<div class="heads-table heads-map" role="region" tabindex="0" data-table="map"'
        f' aria-label="{escape(caption)}"><table><caption><span>{escape(caption)}</span></caption>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def show(*tables: str) -> None:
    """Draw tables beside each other where there is room, else below each other."""
    st.html(f'<div class="heads-tables">{"".join(tables)}</div>')
