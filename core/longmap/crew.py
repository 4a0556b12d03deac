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
from collections.abc import Callable, Sequence

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
    jobs: Sequence,
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
    where = places(device)[: max(1, len(jobs))]
    with _settings:
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


class _Settings:
    """What torch is set to, for the whole process, while any crew works: put back after the last.

    Products of float32 are exact, whatever somebody allowed (bf16, TF32). Workers take one core
    each; that number is one for the process (MKL's) and one per thread (OpenMP's), and a thread
    born meanwhile starts with 1: a low number outside the main thread is not believed.
    """

    def __init__(self):
        self.lock, self.crews, self.cores, self.precision = threading.Lock(), 0, CORES, "highest"

    def __enter__(self):
        with self.lock:
            if not self.crews:
                main = threading.current_thread() is threading.main_thread()
                self.cores = torch.get_num_threads() if main else CORES
                self.precision = torch.get_float32_matmul_precision()
                self._allow("highest")
            self.crews += 1

    def __exit__(self, *failure):
        with self.lock:
            self.crews -= 1
            if not self.crews:
                self._allow(self.precision)
                torch.set_num_threads(self.cores)

    def _allow(self, precision: str) -> None:
        if torch.get_float32_matmul_precision() != precision:
            torch.set_float32_matmul_precision(precision)


_settings = _Settings()
