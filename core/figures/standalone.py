"""A trace as one HTML file that opens without this program and without a network.

Plotly's whole script is in it (4.8 MB: the wheel ships no smaller one), the steps are its frames.
A content security policy in the file lets only its own two scripts run, by their hash, and lets
nothing be fetched; what a reader typed is escaped all the same.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path

import numpy as np
from plotly.offline import get_plotlyjs

from core.figures import theme
from core.figures.formula import inline
from core.figures.frames import PAUSE, described

HERE = Path(__file__).parent
# What the caller gives words for; without them the key itself stands there.
WORDS = ("title", "step", "symbol", "dims", "shape", "shapes", "play", "pause")


def standalone_html(
    trace,
    pick: Mapping[str, int] | None = None,
    labels: Mapping[str, Sequence[str]] | None = None,
    text: Mapping[str, str] | None = None,
    prose: Mapping[str, str] | None = None,
    dark: bool = False,
    lang: str = "en",
) -> str:
    """The step-through as one self-contained HTML page, some 5 MB.

    `pick`, `labels` as in `contact_sheet`. `text`: WORDS in the reader's language, and "intro", a
    paragraph under the title. `prose`: per symbol what is said about the step, paragraphs set
    apart by empty lines, with **bold**, `code` and $formulas$; all else is shown as it is written.

    >>> import core
    >>> trace = core.run(core.AttentionConfig(S=4, H=6, d_k=3))
    >>> page = standalone_html(trace, text={"title": "<Q>"})
    >>> page.startswith("<!doctype html>"), "<h1>&lt;Q&gt;</h1>" in page
    (True, True)
    """
    text = dict.fromkeys(WORDS) | dict(text or {})
    words = {key: word if word is not None else key for key, word in text.items()}
    shown = {key: word for key, word in text.items() if word}
    sections = [_section(trace, place, (prose or {}).get(s, "")) for place, s in enumerate(trace)]
    body = f"""<main>
<h1>{escape(words["title"])}</h1>
{_paragraphs(words.get("intro", ""))}
<div class="stage" tabindex="0" role="region" aria-label="{escape(words["title"])}">
<div id="figure"></div></div>
<div aria-live="polite">{"".join(sections)}</div>
{_table(trace, words)}
</main>"""
    return _document(body, _data(trace, pick, labels, shown, dark), words["title"], dark, lang)


# --- the file ---------------------------------------------------------------------------------


@cache
def _file(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


@cache
def _policy() -> str:
    """Only the two scripts of the file run, and nothing is loaded from anywhere."""
    digests = [sha256(script.encode()).digest() for script in (get_plotlyjs(), _glue())]
    hashes = " ".join(f"'sha256-{b64encode(digest).decode()}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'"
    )


def _glue() -> str:
    return _file("standalone.js")


def _document(body: str, data: str, title: str, dark: bool, lang: str) -> str:
    return f"""<!doctype html>
<html lang="{escape(lang)}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_policy()}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_colours(dark)}
{_file("standalone.css")}</style>
</head>
<body>
{body}
<script type="application/json" id="figure-data">{data}</script>
<script>{get_plotlyjs()}</script>
<script>{_glue()}</script>
</body>
</html>
"""


def _colours(dark: bool) -> str:
    colours = theme.palette(dark)
    names = ("ground", "raised", "ink", "muted", "line", "primary")
    pairs = {name: getattr(colours, name) for name in names}
    pairs |= {"font": theme.FONT, "code": theme.CODE_FONT, "scheme": "dark" if dark else "light"}
    return ":root {" + " ".join(f"--{name}: {value};" for name, value in pairs.items()) + "}"


def _data(trace, pick, labels, text, dark: bool) -> str:
    """The figure as JSON that cannot end the script element it stands in."""
    traces, layout, dark, frames = described(trace, pick, labels, text, dark)
    whole = {
        "data": traces,
        "layout": layout | {"template": theme.template(dark), "height": None, "autosize": True},
        "frames": frames,
        "config": theme.CONFIG,
        "pause": PAUSE,
    }
    return json.dumps(whole, default=_packed, allow_nan=False).replace("<", "\\u003c")


def _packed(array: np.ndarray) -> dict:
    """An array as Plotly reads it fastest: its bytes, little-endian, in base64."""
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return {
        "dtype": array.dtype.str[1:],
        "bdata": b64encode(array.tobytes()).decode(),
        "shape": ", ".join(map(str, array.shape)),
    }


# --- what is said about a step ----------------------------------------------------------------


def _section(trace, place: int, said: str) -> str:
    step = trace.steps[place]
    sizes = ", ".join(map(str, step.shape))
    return f"""<section class="step" data-step="{place}" data-symbol="{escape(step.symbol)}">
<h2><small>{place + 1} / {len(trace)}</small> {_symbol(step.symbol)} <small>({sizes})</small></h2>
<div class="formula">{inline(step.latex)}</div>
<pre tabindex="0"><code>{escape(step.code)}</code></pre>
{_paragraphs(said)}
</section>
"""


def _table(trace, words: Mapping[str, str]) -> str:
    """The shapes of all steps; each symbol is a button that goes there."""
    heads = "".join(f'<th scope="col">{escape(words[k])}</th>' for k in ("symbol", "dims", "shape"))
    rows = "".join(
        f'<tr data-step="{place}"><td>{place + 1}</td>'
        f'<td><button type="button">{_symbol(step.symbol)}</button></td>'
        f"<td>({escape(', '.join(step.dims.split()))})</td>"
        f"<td>({', '.join(map(str, step.shape))})</td></tr>\n"
        for place, step in enumerate(trace.steps)
    )
    return (
        f'<div class="tables"><table><caption>{escape(words["shapes"])}</caption>'
        f'<thead><tr><th scope="col">{escape(words["step"])}</th>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _symbol(name: str) -> str:
    base, _, tail = name.partition("_")
    return escape(base) + (f"<sub>{escape(tail)}</sub>" if tail else "")


_MARK = re.compile(r"`([^`]+)`|\$([^$\n]+)\$|\*\*([^*]+)\*\*")


def _paragraphs(said: str) -> str:
    blocks = (block.strip() for block in re.split(r"\n\s*\n", said))
    return "\n".join(f"<p>{_marked(block)}</p>" for block in blocks if block)


def _marked(line: str) -> str:
    """Bold, code and formulas; every other character as it is written.

    >>> _marked("**a** <b> `c<d` $x$")
    '<strong>a</strong> &lt;b&gt; <code>c&lt;d</code> <math><mi>x</mi></math>'
    """
    parts, at = [], 0
    for found in _MARK.finditer(line):
        parts.append(escape(line[at : found.start()]))
        code, formula, bold = found.groups()
        if code:
            parts.append(f"<code>{escape(code)}</code>")
        elif formula:
            parts.append(inline(formula))
        else:
            parts.append(f"<strong>{escape(bold)}</strong>")
        at = found.end()
    return "".join(parts) + escape(line[at:])
