"""Where a reader stands in a trace: the step, the chosen sample and head, the clicked cell."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from core import Trace
from core.trace import TracedStep
from parts.link import passed_over
from parts.state import write_url
from parts.text import _, prose

MODES = {"values": "Values", "gradient": "Gradient"}


@dataclass(frozen=True)
class View:
    """A position in `trace`; kept in the session, written to the URL."""

    trace: Trace
    place: int
    pick: tuple[tuple[str, int], ...]
    cell: dict | None
    mode: str
    panel: str | None

    URL = ("step", "at", "sample", "head", "view", "panel")

    @classmethod
    def of(cls, trace: Trace) -> View:
        """The session's position, moved to where this trace has such a step, sample and head."""
        opening = "view" not in st.session_state
        kept = st.session_state.setdefault("view", _from_url())
        symbols = list(trace)
        place = symbols.index(kept["step"]) if kept["step"] in trace else kept["place"]
        place = min(max(place, 0), len(symbols) - 1)
        extents = {n: trace.sizes[n] for n in ("B", "h") if trace.sizes.get(n, 1) > 1}
        pick = tuple((n, min(kept["pick"].get(n, 0), size - 1)) for n, size in extents.items())
        cell = kept["cell"] if _exists(trace, kept["cell"]) else None
        made = cls(trace, place, pick, cell, kept["mode"], kept["panel"])
        if opening:
            made._compare_with_link()
        return made

    def _compare_with_link(self) -> None:
        """Say what the link asks for and this trace does not have."""
        pick = dict(self.pick)
        shown = {"step": self.step.symbol, "view": self.mode} | self.to_url()
        shown |= {"sample": str(pick.get("B", 0)), "head": str(pick.get("h", 0))}
        for name in self.URL:
            asked = st.query_params.get(name)
            if asked and asked != shown.get(name, ""):
                passed_over(name, asked, shown.get(name, ""))

    @property
    def step(self) -> TracedStep:
        return self.trace.steps[self.place]

    @property
    def target(self) -> tuple[str, tuple[int, ...]] | None:
        """The element whose gradient is shown: the clicked one, else the first of the result."""
        if self.mode != "gradient":
            return None
        if self.cell:
            return self.cell["symbol"], tuple(self.cell["index"])
        last = self.trace.steps[-1]
        return last.symbol, (0,) * len(last.shape)

    def mode_switch(self) -> None:
        """Values, or the gradient of one element; and what the keys do."""
        with st.container(horizontal=True, vertical_alignment="center"):
            st.segmented_control(
                _("Show"),
                list(MODES),
                format_func={mode: _(label) for mode, label in MODES.items()}.get,
                key=_keep("w_mode", self.mode),
                on_change=lambda: _remember(mode=st.session_state["w_mode"]),
                required=True,
                label_visibility="collapsed",
            )
            with st.popover(_("Keys"), icon=":material/keyboard:"):
                st.markdown(prose("about/keys"))
        if self.mode == "gradient":
            st.caption(prose("about/gradient_pick"))

    def panel_switch(self, panels: dict[str, str]) -> str | None:
        """Which of the panels (name -> label) is open; none at first."""
        return st.segmented_control(
            _("More about this computation"),
            list(panels),
            format_func={name: _(label) for name, label in panels.items()}.get,
            key=_keep("w_panel", self.panel if self.panel in panels else None),
            on_change=lambda: _remember(panel=st.session_state["w_panel"]),
        )

    def take(self, state) -> None:
        """Remember what the browser reports of step, cell and choice."""
        place = min(max(int(state.step), 0), len(self.trace) - 1)
        _remember(place=place, step=self.trace.steps[place].symbol)
        if state.pick:
            _remember(pick={n: int(i) for n, i in state.pick.items()})
        if _exists(self.trace, state.cell) and self._may_target(state.cell):
            _remember(cell={"symbol": state.cell["symbol"], "index": list(state.cell["index"])})

    def _may_target(self, cell) -> bool:
        """In the gradient view a click picks a new element only among those that were computed."""
        return self.mode == "values" or bool(self.trace.step(cell["symbol"]).reads)

    def write_url(self) -> None:
        """Let the address say where the reader stands."""
        write_url(self.URL, self.to_url())

    def to_url(self) -> dict[str, str]:
        """Step by name, cell, choice and mode, as far as they differ from the start."""
        shown = {"step": self.step.symbol} if self.place else {}
        if self.cell:
            shown["at"] = f"{self.cell['symbol']}:{','.join(map(str, self.cell['index']))}"
        for name, key in (("B", "sample"), ("h", "head")):
            if dict(self.pick).get(name):
                shown[key] = str(dict(self.pick)[name])
        shown |= {"view": self.mode} if self.mode != "values" else {}
        return shown | ({"panel": self.panel} if self.panel else {})


def _keep(key, value):
    if st.session_state.get(key) != value:
        st.session_state[key] = value
    return key


def _remember(**values):
    st.session_state["view"] = st.session_state["view"] | values


def _exists(trace, cell) -> bool:
    if not cell or cell.get("symbol") not in trace:
        return False
    shape, index = trace.shape(cell["symbol"]), cell.get("index", ())
    return len(index) == len(shape) and all(
        type(i) is int and 0 <= i < n for i, n in zip(index, shape, strict=True)
    )


def _from_url() -> dict:
    """The position a link names; what cannot be read is left out."""
    query = st.query_params
    symbol, _colon, index = query.get("at", "").partition(":")
    numbers = [int(part) for part in index.split(",") if part.isdecimal()]
    pick = {n: query[k] for n, k in (("B", "sample"), ("h", "head")) if k in query}
    return {
        "step": query.get("step", ""),
        "place": 0,
        "pick": {n: int(text) for n, text in pick.items() if text.isdecimal()},
        "cell": {"symbol": symbol, "index": numbers} if symbol else None,
        "mode": query.get("view") if query.get("view") in MODES else "values",
        "panel": query.get("panel"),
    }
