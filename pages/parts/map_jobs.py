"""Maps in the making, shared by all visitors: each is computed once, the long ones one at a time.

A job runs in a thread of its own and outlives the run of the script that asked for it. It rests
when nobody has looked at it for a while, when its reader stops it, and for the moment that a view
of a map is being computed. Finished maps are kept as long as there is room for them.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass

from core import longmap
from core.errors import InputError
from core.longmap_sources import Source
from parts import map_picture

ROOM = 400 * 2**20  # bytes of maps and their q and k
TILES = 1024
SHORT = 4096**2  # scores (all heads) of a map that need not wait for another
AT_ONCE = 4096**2  # scores of a map that needs no coarse picture before
GRACE = 0.4  # seconds after a coarse picture in which it reaches the reader undisturbed
ABANDONED = 6.0  # seconds without a look
PICTURES = 6  # finer pictures kept per job
RATE = 2e8  # scores per second of a view, until measured
QUICK = 0.08  # seconds that a view may take at once
LONGEST = 3.0  # seconds that a finer picture may take


@dataclass(frozen=True)
class Spec:
    """All that decides what a map holds."""

    source: str
    S: int
    seed: int
    pool: str
    causal: bool
    window: tuple[int, int] | None
    digest: str = ""  # of an upload, or of a model, a text and a layer
    scale: float | None = None
    softcap: float | None = None

    @property
    def options(self) -> dict:
        names = ("pool", "causal", "window", "scale", "softcap")
        return {name: getattr(self, name) for name in names}


class Job:
    """One map: `map` is there from the first coarse picture on and only gets better."""

    def __init__(self, spec: Spec, source: Source, store: "Store"):
        self.spec, self.source, self.store = spec, source, store
        self.map = None
        self.state = "new"  # new, waiting, running, stopped, resting, done, failed
        self.problem: InputError | None = None
        self.version = 0
        self.kept: OrderedDict = OrderedDict()
        self._looked = time.monotonic()
        self._stop = False
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._news = threading.Condition(self._lock)
        self._finer: dict[str, tuple] = {}  # reader -> the finer picture they wait for
        self._sharpening = False

    # --- what a page asks -------------------------------------------------------------------------

    def look(self, patience: float = 0.0) -> None:
        """Say that somebody is looking; begin or go on where that is due. Waits for the coarse
        picture, and up to `patience` seconds longer for the end."""
        self._looked = time.monotonic()
        with self._lock:
            if self.state in ("new", "resting"):
                self._start()
        with self._news:
            self._news.wait_for(lambda: self.map is not None or self.state == "failed", 60)
            if self.state in ("running", "waiting"):
                self._news.wait_for(lambda: self.state not in ("running", "waiting"), patience)

    def stop(self) -> None:
        """End soon; what there is stays."""
        with self._news:
            self._stop = True
            if self.state in ("running", "waiting"):
                self.state = "stopped"
            self._news.notify_all()

    def resume(self) -> None:
        with self._lock:
            if self.state == "stopped":
                self._start()

    def picture(self, view, pixels, head: int, who: str = "") -> map_picture.Picture:
        """What `view` looks like, at once; a finer picture is begun where that takes longer.

        `who` is looking: what they wished for before is given up.
        """
        with self.store.attending():
            began = time.perf_counter()
            found = map_picture.fitting(
                self.map, view, pixels, head=head, afford=self.store.rate * QUICK, kept=self.kept
            )
            if not found.coarse and found.block != (1, 1):
                self.store.measured(view[2] * view[3], time.perf_counter() - began)
        within = found.wanted and found.wanted[-1] <= self.store.rate * LONGEST
        self._refine(who, found.wanted if within else None)
        return found

    @property
    def bytes(self) -> int:
        held = [self.source.q, self.source.k, *([self.map.tiles] if self.map else [])]
        return sum(each.numel() * each.element_size() for each in held)

    @property
    def busy(self) -> bool:
        return self.state in ("new", "running", "waiting")

    # --- the thread -------------------------------------------------------------------------------

    def _start(self) -> None:
        self._stop = False
        self.state = "running"
        before = self._thread
        self._thread = threading.Thread(target=self._run, args=(before,), daemon=True)
        self._thread.start()

    def _run(self, before) -> None:
        if before:
            before.join()  # it may still be at its last block
        try:
            self._compute()
        except InputError as problem:
            self.problem = problem
            self._say("failed")
        except Exception:
            logging.getLogger(__name__).exception("a map could not be computed")
            self._say("failed")

    def _compute(self) -> None:
        spec, source = self.spec, self.source
        tiles = TILES if source.heads == 1 else TILES // 2
        states = longmap.refine(
            source.q, source.k, stop=self._halted, start=self.map, tiles=tiles, entropy=False,
            **spec.options,
        )  # fmt: skip
        S, T = source.shape
        scores = source.heads * S * T
        if self.map is None and scores <= AT_ONCE:
            made = longmap.attention_map(source.q, source.k, tiles=tiles, **spec.options)
            self.map, self.version = made, 1
            return self._say("done")
        first = self.map is None
        if first:
            self.map = next(states)
            self.version += 1
        mine = scores > SHORT and self.store.turn.acquire(blocking=False)
        if scores > SHORT and not mine:
            self._change("running", "waiting")
        self._say(self.state)
        if scores <= SHORT:
            return self._finish(states)
        while not mine:
            mine = self.store.turn.acquire(timeout=0.2)
            if not mine and self._halted():
                return self._rest()
        try:
            self._change("waiting", "running")
            time.sleep(GRACE if first else 0)
            self._finish(states)
        finally:
            self.store.turn.release()

    def _finish(self, states) -> None:
        for _state in states:
            self.version += 1
        if self.map.exact:
            self._say("done")
        else:
            self._rest()

    def _halted(self) -> bool:
        """Asked between blocks of work: whether to end. Holds still while a view is computed."""
        self.store.quiet.wait(2)
        return self._stop or time.monotonic() - self._looked > ABANDONED

    def _rest(self) -> None:
        self._say("stopped" if self._stop else "resting")

    def _say(self, state: str) -> None:
        with self._news:
            if not (self._stop and state == "running"):
                self.state = state
            self._news.notify_all()

    def _change(self, before: str, after: str) -> None:
        with self._news:
            if self.state == before:
                self.state = after

    # --- finer pictures ---------------------------------------------------------------------------

    def _refine(self, who: str, wanted: tuple | None) -> None:
        """Compute one finer picture for a reader, in place of the one they wished for before."""
        with self._lock:
            if wanted is None:
                self._finer.pop(who, None)
                return
            self._finer[who] = wanted
            running, self._sharpening = self._sharpening, True
        if not running:
            threading.Thread(target=self._sharpen, daemon=True).start()

    def _sharpen(self) -> None:
        while True:
            with self._lock:
                who, wanted = next(iter(self._finer.items()), (None, None))
                self._sharpening = wanted is not None
            if wanted is None:
                return
            try:
                self._keep(wanted, lambda who=who, mine=wanted: self._finer.get(who) != mine)
            except Exception:
                logging.getLogger(__name__).exception("a view could not be computed")
            with self._lock:
                if self._finer.get(who) == wanted:
                    del self._finer[who]

    def _keep(self, wanted: tuple, given_up: Callable[[], bool]) -> None:
        with self.store.attending():
            found = map_picture.in_bands(self.map, wanted, given_up)
        if found is not None:
            self.kept[wanted[:3]] = found
            while len(self.kept) > PICTURES:
                self.kept.popitem(last=False)


class Store:
    """The jobs of this process."""

    def __init__(self, room: int = ROOM):
        self.room = room
        self.turn = threading.Lock()  # held by the one long map that is being computed
        self.quiet = threading.Event()
        self.quiet.set()
        self.rate = RATE
        self._jobs: OrderedDict[Spec, Job] = OrderedDict()
        self._lock = threading.Lock()
        self._attending = 0

    def job(self, spec: Spec, source: Callable[[], Source]) -> Job:
        """The job for `spec`: the one there is, else a new one of what `source()` gives."""
        with self._lock:
            found = self._jobs.get(spec)
            if found is None:
                found = self._jobs[spec] = Job(spec, source(), self)
            self._jobs.move_to_end(spec)
            self._forget()
            return found

    def _forget(self) -> None:
        """Let the maps go that were asked for longest ago, until the rest has room."""
        for spec in list(self._jobs)[:-1]:
            if sum(job.bytes for job in self._jobs.values()) <= self.room:
                return
            if not self._jobs[spec].busy:
                del self._jobs[spec]

    @contextmanager
    def attending(self):
        """While a view is computed for a reader, maps in the making hold still."""
        with self._lock:
            self._attending += 1
            self.quiet.clear()
        try:
            yield
        finally:
            with self._lock:
                self._attending -= 1
                if not self._attending:
                    self.quiet.set()

    def measured(self, scores: int, seconds: float) -> None:
        """Learn how fast views are computed here."""
        if scores > 1e6:
            self.rate = 0.7 * self.rate + 0.3 * min(2e9, max(2e7, scores / max(seconds, 1e-4)))


STORE = Store()
