"""The engine against hand-written eager torch that keeps the same tensors: time and peak memory.

Both compute causal self-attention with heads from the same X and W's. They take turns in one
process, and times are medians. Peak memory is that of fresh processes, above what they held before.
"""

import functools
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

import core
from core import inputs as seeded_inputs

SIZES = ((1, 512, 768, 12), (1, 2048, 768, 12))  # B, S, H, h
REPEATS = 20
PROCESSES = 3


def inputs(B, S, H, h):
    """X, W_Q, W_K, W_V and W_O of a configuration, as the engine seeds them."""
    config = configuration(B, S, H, h)
    made = seeded_inputs.make(config)
    return [made[name].tensor for name in ("X", "W_Q", "W_K", "W_V", "W_O")]


def configuration(B, S, H, h):
    return core.AttentionConfig(B=B, S=S, H=H, h=h, causal=True, project=True)


@torch.no_grad()
def eager(X, W_Q, W_K, W_V, W_O, h) -> dict:
    """Attention as one writes it by hand, every intermediate kept."""
    B, S, H = X.shape
    d_k = H // h
    Q, K, V = X @ W_Q, X @ W_K, X @ W_V
    Q_split, K_split, V_split = (x.view(B, S, h, d_k) for x in (Q, K, V))
    Q_heads, K_heads, V_heads = (x.transpose(1, 2) for x in (Q_split, K_split, V_split))
    scores = Q_heads @ K_heads.transpose(-2, -1)
    scaled = scores * d_k**-0.5
    mask = torch.ones(S, S, dtype=torch.bool).tril()
    masked = scaled.masked_fill(~mask, -torch.inf)
    weights = masked.softmax(-1)
    output = weights @ V_heads
    swapped = output.transpose(1, 2)
    merged = swapped.reshape(B, S, H)
    projected = merged @ W_O
    return {name: value for name, value in locals().items() if isinstance(value, torch.Tensor)}


def ours(X, W_Q, W_K, W_V, W_O, h):
    """The engine: scaled and masked scores are made when they are asked for."""
    return core.self_attention(X, W_Q, W_K, W_V, W_O, heads=h, causal=True)


def ours_complete(*given):
    """The engine, and then every tensor asked for at once."""
    trace = ours(*given)
    return trace, {symbol: trace[symbol] for symbol in trace}


def from_seed(B, S, H, h):
    """`core.run`: the inputs are drawn as well."""
    return core.run(configuration(B, S, H, h), device="cpu")


def eager_from_seed(B, S, H, h):
    return eager(*inputs(B, S, H, h), h)


def alternating(*asks) -> list[list[float]]:
    """Milliseconds of each, in turn and every other time in reverse, after a first round."""
    times = [[] for _ in asks]
    for turn in range(REPEATS + 1):
        for number in sorted(range(len(asks)), reverse=turn % 2 == 1):
            start = time.perf_counter()
            made = asks[number]()
            took = (time.perf_counter() - start) * 1000
            del made
            if turn:
                times[number].append(took)
    return times


def ratio(ours: list[float], theirs: list[float]) -> float:
    """The median of the ratios of neighbours in time: a busy moment strikes both."""
    return round(statistics.median(a / b for a, b in zip(ours, theirs, strict=True)), 3)


def peak(kind: str, size: tuple[int, ...]) -> float:
    """MiB that one call takes above what its process held before, median of fresh processes."""
    command = [sys.executable, "-m", "tests.bench.engine", kind, *map(str, size)]
    found = [
        json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
        for _ in range(PROCESSES)
    ]
    return statistics.median(found)


def resident() -> float:
    """MiB this process has held at most."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss would count the process that started this one, too
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) / 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1 << 20 if sys.platform == "darwin" else 1 << 10)


KINDS = {"eager": eager, "ours": ours, "ours, all asked for": ours_complete}


def alone(kind: str, B: int, S: int, H: int, h: int) -> None:
    """Print the peak of one call; in a process of its own."""
    small, given = inputs(B, 16, H, h), inputs(B, S, H, h)
    KINDS[kind](*small, h)  # libraries are loaded and threads started
    before = resident()
    made = KINDS[kind](*given, h)
    print(round(resident() - before, 1))
    del made


def compare(size) -> dict:
    given = (*inputs(*size), size[-1])
    hand, lean, whole = (functools.partial(f, *given) for f in (eager, ours, ours_complete))
    by_hand, lean = alternating(hand, lean)
    by_hand_again, whole = alternating(hand, whole)
    seeded = alternating(*(functools.partial(f, *size) for f in (eager_from_seed, from_seed)))
    memory = {kind: peak(kind, size) for kind in KINDS}
    names = eager(*given).keys() - {"Q_split", "K_split", "V_split"}
    return {
        "B, S, H, h": size,
        "tensors kept by both": len(names & set(ours(*given))) + 3,
        "eager_ms": round(statistics.median(by_hand), 1),
        "ours_ms": round(statistics.median(lean), 1),
        "ratio": ratio(lean, by_hand),
        "ours_all_asked_for_ms": round(statistics.median(whole), 1),
        "ratio_all_asked_for": ratio(whole, by_hand_again),
        "eager_from_seed_ms": round(statistics.median(seeded[0]), 1),
        "core_run_ms": round(statistics.median(seeded[1]), 1),
        "ratio_from_seed": ratio(seeded[1], seeded[0]),
        "peak_mib": memory,
        "ratio_of_peaks": round(memory["ours"] / memory["eager"], 3),
    }


def measure() -> dict:
    """Ours against eager at each size; a ratio below 1 means ours takes less."""
    return {"repeats": REPEATS, "sizes": [compare(size) for size in SIZES]}


if __name__ == "__main__":
    alone(sys.argv[1], *map(int, sys.argv[2:]))
