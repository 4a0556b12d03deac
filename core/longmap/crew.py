"""Who does the work: on a CPU one thread per core, each on rows of its own; else one per GPU.

A block of scores then stays in the fast memory of the core that made it, and no core waits for
another between two operations. torch gives the interpreter free while it computes.

>>> done = []
>>> work([3, 4], lambda job, scratch, halted: done.append(job) or True, torch.device("cpu"))
2
>>> sorted(done)
[3, 4]
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

import torch

from core.longmap.sweep import Scratch

CORES = torch.get_num_threads()  # as torch counts them at the start; OMP_NUM_THREADS sets them
POLL = 0.02  # seconds between two questions to `stop`


def places(device: torch.device) -> list[torch.device]:
    """Where blocks are computed at the same time.

    >>> len(places(torch.device("cpu"))) == CORES
    True
    """
    if device.type == "cpu":
        return [device] * CORES
    return [torch.device(device.type, index) for index in range(torch.cuda.device_count())]


def work(
    jobs: Iterable,
    do: Callable,
    device: torch.device,
    *,
    seconds: float = float("inf"),
    stop: Callable[[], bool] | None = None,
) -> int:
    """Do jobs until there are none left, `seconds` have passed or `stop()` is true.

    `do(job, scratch, halted)` returns whether it finished its job; it may ask `halted()` on the
    way. Returns how many were finished. A job that was begun is finished, but for `stop`.
    """
    crew = _Crew(iter(jobs), do, time.perf_counter() + seconds)
    where = places(device)
    if len(where) == 1:
        crew.labour(where[0], stop or bool)
    else:
        crew.share(where, stop)
    if crew.failure:
        raise crew.failure
    return crew.done


class _Crew:
    def __init__(self, jobs, do, deadline):
        self.jobs, self.do, self.deadline = jobs, do, deadline
        self.lock, self.halt, self.done, self.failure = threading.Lock(), False, 0, None

    def labour(self, device, stop) -> None:
        scratch = Scratch(device)

        def halted() -> bool:
            self.halt = self.halt or stop()
            return self.halt

        with torch.no_grad():
            while not halted() and time.perf_counter() < self.deadline:
                with self.lock:
                    job = next(self.jobs, None)
                if job is None:
                    return
                finished = self.do(job, scratch, halted)
                with self.lock:
                    self.done += bool(finished)

    def share(self, where, stop) -> None:
        threads = [threading.Thread(target=self._member, args=(place,)) for place in where]
        with _one_core_each:
            for thread in threads:
                thread.start()
            try:
                while threads:
                    self.halt = self.halt or bool(stop and stop())
                    threads[0].join(POLL if stop else None)
                    threads = [thread for thread in threads if thread.is_alive()]
            finally:  # also when the one who waits is interrupted
                self.halt = self.halt or bool(threads)
                for thread in threads:
                    thread.join()

    def _member(self, device) -> None:
        try:
            torch.set_num_threads(1)
            self.labour(device, bool)
        except BaseException as failure:  # raised again where it was asked for
            self.failure, self.halt = failure, True


class _OneCoreEach:
    """While any crew works, torch's operations take one core each: its number is put back after.

    The number is one for the whole process (that of MKL) and one per thread (that of OpenMP), and
    a thread born meanwhile starts with 1: a low number outside the main thread is not believed.
    """

    def __init__(self):
        self.lock, self.crews, self.count = threading.Lock(), 0, CORES

    def __enter__(self):
        with self.lock:
            if not self.crews:
                main = threading.current_thread() is threading.main_thread()
                self.count = torch.get_num_threads() if main else CORES
            self.crews += 1

    def __exit__(self, *failure):
        with self.lock:
            self.crews -= 1
            if not self.crews:
                torch.set_num_threads(self.count)


_one_core_each = _OneCoreEach()
