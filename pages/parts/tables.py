"""Tables of numbers as HTML: compact enough for a phone, with a caption and headed rows.

Markdown's tables have neither, and are cut off where they are wider than the page.
"""

from collections.abc import Sequence
from html import escape
from pathlib import Path

import streamlit as st

STYLE = Path(__file__).parents[2] / "assets/tables/tables.css"


def table_style() -> None:
    """Give the page the look of its tables; once per page."""
    st.html(STYLE)


def table(
    caption: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    sum_row: bool = False,
    bad: Sequence[int] = (),
    place=st,
) -> None:
    """A table whose first column heads its rows; everything is shown as it is, escaped.

    `sum_row`: the last row is set off by a rule. `bad`: rows in bold.
    """
    place.html(html(caption, head, rows, sum_row=sum_row, bad=bad))


def html(caption, head, rows, *, sum_row=False, bad=()) -> str:
    """The markup of `table`.

    >>> html("", ["", "exp"], [["x₁", "1 < 2"]]).partition("<tbody>")[2]
    '<tr><th scope="row">x₁</th><td>1 &lt; 2</td></tr></tbody></table></div>'
    """
    columns = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = ""
    for i, (name, *cells) in enumerate(rows):
        kinds = ["sum"] * (sum_row and i == len(rows) - 1) + ["bad"] * (i in bad)
        kind = f' class="{" ".join(kinds)}"' if kinds else ""
        inner = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        body += f'<tr{kind}><th scope="row">{escape(name)}</th>{inner}</tr>'
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    top = f"<thead><tr>{columns}</tr></thead>"
    return f'<div class="numbers"><table>{title}{top}<tbody>{body}</tbody></table></div>'
