"""Taking a head along: a standalone page, a script, and all its tensors."""

from __future__ import annotations

import tempfile
from pathlib import Path

import streamlit as st

from core import Trace
from core.figures.standalone import standalone_html
from parts.sharing import words
from parts.step_view import step_prose
from parts.text import _, language


def take_along(trace: Trace, labels: dict[str, list[str]], title: str) -> None:
    """Three downloads of one head, made when asked for. `title` heads the page."""
    # Gathered now, as a download is made outside of the visitor's session.
    texts = {step.symbol: step_prose(trace, step) for step in trace.steps}
    chosen = {
        "labels": labels,
        "text": words() | {"title": title},
        "prose": texts,
        "dark": st.context.theme.type == "dark",
        "lang": language(),
    }
    files = (
        (_("Step-through as one HTML file"), "head.html", "text/html",
         lambda: standalone_html(trace, **chosen), ":material/html:"),
        (_("PyTorch script"), "head.py", "text/x-python",
         lambda: trace.source("head.safetensors"), ":material/code:"),
        (_("All tensors (safetensors)"), "head.safetensors", "application/octet-stream",
         lambda: saved(trace), ":material/database:"),
    )  # fmt: skip
    with st.container(horizontal=True):
        for label, name, kind, make, icon in files:
            st.download_button(
                label, make, name, kind, key=f"model_get_{name}", icon=icon, on_click="ignore"
            )


def saved(trace: Trace) -> bytes:
    """The file that `Trace.load`, and the script, read."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "head.safetensors"
        trace.save(str(path))
        return path.read_bytes()
