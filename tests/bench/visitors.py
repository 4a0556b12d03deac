"""100 visitors on one server process: each has a session of its own and causes a rerun every 2 s.

A visitor speaks Streamlit's own socket protocol: it opens the page, then alternately moves the
slider S (the whole script runs) and steps (the fragment runs). A rerun's time is from the message
sent until the server says that the script has finished.
"""

import asyncio
import os
import random
import resource
import statistics
import tempfile
import time

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.browser.conftest import start_server, stop_server

VISITORS = 100
EVERY = 2.0  # seconds between a visitor's reruns


class Visitor:
    """One session: remembers its widgets and fragment, as a browser does."""

    def __init__(self, socket):
        self.socket, self.slider, self.microscope, self.fragment = socket, None, None, ""
        self.options, self.state, self.step, self.errors = [], {}, 0, 0

    async def rerun(self, widgets=(), fragment=""):
        """Send a rerun and read until it is finished; seconds it took."""
        message = BackMsg()
        message.rerun_script.query_string = ""
        message.rerun_script.fragment_id = fragment
        for identity, kind, value in widgets:
            self.state[identity] = (kind, value)
        for identity, (kind, value) in self.state.items():
            state = message.rerun_script.widget_states.widgets.add(id=identity)
            if kind == "string_array_value":
                state.string_array_value.data.append(value)
            else:
                setattr(state, kind, value)
        start = time.perf_counter()
        await self.socket.send(message.SerializeToString())
        while True:
            answer = ForwardMsg.FromString(await self.socket.recv())
            kind = answer.WhichOneof("type")
            if kind == "delta":
                self._read(answer)
            elif kind == "session_event" or kind == "page_not_found":
                self.errors += kind == "page_not_found"
            elif kind == "script_finished":
                return time.perf_counter() - start

    def _read(self, answer):
        if answer.delta.WhichOneof("type") != "new_element":
            return
        element = answer.delta.new_element
        kind = element.WhichOneof("type")
        self.errors += kind == "exception"
        if kind == "slider" and element.slider.label.startswith("S,"):
            self.slider, self.options = element.slider.id, list(element.slider.options)
        if kind == "bidi_component" and element.bidi_component.component_name.endswith(
            "microscope"
        ):
            self.microscope = element.bidi_component.id
            self.fragment = answer.delta.fragment_id or self.fragment

    async def act(self, turn):
        """Move the slider, or step."""
        if turn % 2:
            place = self.options[random.randrange(2, 8)]
            return await self.rerun([(self.slider, "string_array_value", place)])
        self.step = (self.step + 1) % 10
        state = f'{{"step": {self.step}}}'
        return await self.rerun([(self.microscope, "json_value", state)], self.fragment)


async def visit(url, start, seconds, times, errors, number):
    """One visitor's stay."""
    address = url.replace("http", "ws") + "/_stcore/stream"
    async with websockets.connect(address, subprotocols=["streamlit"], max_size=None) as socket:
        visitor = Visitor(socket)
        await visitor.rerun()
        await asyncio.sleep(max(0, start - time.monotonic()) + EVERY * number / VISITORS)
        turn = 0
        while time.monotonic() < start + seconds:
            took = await visitor.act(turn)
            times.append(took)
            turn += 1
            await asyncio.sleep(max(0.0, EVERY - took))
        errors.append(visitor.errors)


def resident(process) -> float:
    """Resident memory of a process in MB."""
    with open(f"/proc/{process.pid}/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


async def crowd(url, process, seconds, opening=20):
    """All visitors, and the server's memory every ten seconds."""
    times, errors, memory = [], [], []
    start = time.monotonic() + opening
    stays = []
    for number in range(VISITORS):
        stays.append(asyncio.create_task(visit(url, start, seconds, times, errors, number)))
        await asyncio.sleep(opening / VISITORS / 2)
    while any(not stay.done() for stay in stays):
        memory.append(resident(process))
        await asyncio.wait(stays, timeout=10)
    for stay in stays:
        stay.result()
    return times, sum(errors), memory


def measure(seconds: float | None = None) -> dict:
    """Rerun times, errors and memory over `seconds` (default 600, or BENCH_VISITOR_SECONDS)."""
    seconds = seconds or float(os.environ.get("BENCH_VISITOR_SECONDS", "600"))
    with tempfile.TemporaryFile() as log:
        process, url = start_server(log)
        try:
            times, errors, memory = asyncio.run(crowd(url, process, seconds))
        finally:
            stop_server(process)
    cuts = statistics.quantiles(times, n=20)
    settled = memory[3:] or memory  # once everyone is in
    return {
        "visitors": VISITORS,
        "seconds": seconds,
        "reruns": len(times),
        "rerun_p50_ms": round(statistics.median(times) * 1000, 1),
        "rerun_p95_ms": round(cuts[18] * 1000, 1),
        "errors": errors,
        "memory_start_mb": round(settled[0]),
        "memory_end_mb": round(settled[-1]),
        "memory_peak_mb": round(max(memory)),
    }
