"""Taking a computation along: the link, the script, the numbers, the standalone file."""

import tempfile
from pathlib import Path

import numpy as np
import streamlit as st

from core.figures.standalone import standalone_html
from parts.step_view import step_prose
from parts.text import _, language, prose
from parts.traces import sample_labels


def sharing(config, view) -> None:
    """The link in the address bar, and four files to download."""
    st.markdown(prose("about/link"))
    page = _page(config, view)
    files = (
        (_("Step-through as one HTML file"), "attention.html", "text/html", page,
         ":material/html:"),
        (_("PyTorch script"), "attention.py", "text/x-python", lambda: view.trace.source(),
         ":material/code:"),
        (_("All tensors (safetensors)"), "trace.safetensors", "application/octet-stream",
         lambda: _saved(view.trace), ":material/database:"),
        (_("This matrix (CSV)"), f"{view.step.symbol}.csv", "text/csv", lambda: _csv(view),
         ":material/table:"),
    )  # fmt: skip
    for label, name, kind, make, icon in files:
        st.download_button(
            label, make, name, kind, key=f"w_get_{kind}", icon=icon, on_click="ignore"
        )
    with st.expander(_("The script, to read")):
        st.code(view.trace.source(), language="python")


def _page(config, view):
    """What makes the HTML file; texts are gathered now, as a download runs outside the session."""
    texts = {step.symbol: step_prose(view.trace, step) for step in view.trace.steps}
    chosen = {
        "pick": dict(view.pick),
        "labels": sample_labels(config, dict(view.pick).get("B", 0)),
        "text": words(),
        "prose": texts,
        "dark": st.context.theme.type == "dark",
        "lang": language(),
    }
    return lambda: standalone_html(view.trace, **chosen)


def words() -> dict[str, str]:
    """What the file says around its numbers, in the reader's language."""
    return {
        "title": _("Attention, step by step"),
        "step": _("Current step"),
        "symbol": _("Symbol"),
        "dims": _("Axes"),
        "shape": _("Shape"),
        "shapes": _("Shapes, step by step"),
        "play": _("Play"),
        "pause": _("Pause"),
        "pooled": _("largest of its block"),
    }


def _saved(trace) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.safetensors"
        trace.save(str(path))
        return path.read_bytes()


def _csv(view) -> str:
    """The matrix in view, of the chosen sample and head, as comma-separated full-precision rows."""
    step = view.step
    chosen = dict(view.pick)
    lead = [chosen.get(n, 0) if n in ("B", "h") else 0 for n in step.dims.split()[:-2]]
    inside = tuple(min(i, n - 1) for i, n in zip(lead, step.shape, strict=False))
    matrix = view.trace.rows(step.symbol, inside)
    rows = np.atleast_2d(matrix.double().cpu().numpy())
    return "\n".join(",".join(repr(float(x)) for x in row) for row in rows) + "\n"
