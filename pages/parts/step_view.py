"""What stands around the microscope for the step in view: formula, code, prose, shapes, a cell."""

import math
from html import escape

import streamlit as st

from core import InputError, Trace
from core.dims import DIMS
from core.manifest import EXACT
from core.ops import axes
from core.trace import TracedStep
from parts.state import escaped, sentence
from parts.text import _, prose


def step_text(trace: Trace, step: TracedStep) -> None:
    """Formula, line of PyTorch and paragraph of a step, with the sizes on screen."""
    st.subheader(f"{step.symbol} · {_shape(step.dims.split(), step.shape)}", anchor=False)
    if step.reads:
        st.latex(step.latex)
    code_line(step.code)
    st.markdown(step_prose(trace, step))
    if step.shape and math.prod(step.shape[-2:]) > EXACT:
        st.info(prose("about/large"))


def code_line(text: str) -> None:
    """A line of code or arithmetic. st.code would bring a syntax highlighter of 1.5 MB, a third of
    all the work that a browser has until this page is up."""
    st.html(f'<pre class="code-line"><code>{escape(text)}</code></pre>')


def step_prose(trace: Trace, step: TracedStep) -> str:
    """The paragraph of a step, filled with the sizes of its trace."""
    return prose(f"steps/{step.text}", **(dict.fromkeys(DIMS, "–") | dict(trace.sizes)))


def _shape(dims, shape) -> str:
    return "(" + ", ".join(f"{d} = {n}" for d, n in zip(dims, shape, strict=True)) + ")"


def cell_text(trace: Trace, cell: dict | None) -> None:
    """The engine's own arithmetic of the clicked cell."""
    if not cell or cell["symbol"] not in trace:
        st.caption(_("Click a cell, or press Enter on it: its arithmetic stays here."))
        return
    try:
        found = trace.explain(cell["symbol"], cell["index"])
    except InputError:  # the cell of a larger trace, kept from before
        return
    name = f"{found.symbol}{list(found.index)}"
    st.markdown(f"**{_('The engine says')}** `{name}`")
    code_line(f"{name} = {found.text}")
    st.caption(_("exactly {value}").format(value=repr(found.value)))


def cost_text(step: TracedStep) -> None:
    """FLOPs and bytes of a step."""
    where = _("a view of {symbol}, no new memory").format(symbol=step.shares)
    memory = (
        where if step.shares else _("{bytes} bytes of new memory").format(bytes=f"{step.bytes:,}")
    )
    flops = _("{flops} FLOPs").format(flops=f"{step.flops:,}")
    st.caption(f"{flops} · {memory}", help=prose("about/cost"))


SHARED = ("mask", "bias", "cos", "sin", "gain_Q", "gain_K")  # one for all samples, as the W


def shape_table(trace: Trace, current: TracedStep) -> None:
    """All steps with their shapes; the current row is marked; the batch dimension is shown."""
    batched = "B" in trace.sizes
    heads = [_("Symbol"), _("Axes"), _("Shape")] + [_("With a batch")] * (not batched)
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    body = "".join(_row(step, step.symbol == current.symbol, batched) for step in trace.steps)
    caption = escape(_("Shapes, step by step"))
    st.html(
        f'<div class="shapes"><table><caption>{caption}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(step, current, batched):
    shape = tuple(map(str, step.shape))
    cells = [_coloured(step.dims), f"({', '.join(shape)})"]
    if not batched:
        per_sample = not (step.symbol.startswith("W_") or step.symbol in SHARED)
        cells.append(f"({', '.join(('B',) * per_sample + shape)})")
    mark = ' aria-current="step"' if current else ""
    name = f'<th scope="row">{step.symbol}</th>'
    return f"<tr{mark}>{name}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _coloured(dims: str) -> str:
    """Named dims, each in its own colour."""
    return " × ".join(
        "·".join(f'<b style="--dim:{DIMS[atom].colour}">{atom}</b>' for atom in axis)
        for axis in axes(dims)
    )


def notices(trace: Trace) -> None:
    """What a reader should know about these numbers: blind queries, NaN, overflow."""
    for notice in trace.notices:
        st.warning(escaped(sentence(notice)), icon=":material/info:")
