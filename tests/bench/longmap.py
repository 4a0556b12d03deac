"""Long maps: time against attention itself, memory, the first picture, and what is seen from above.

Every comparison is made in pairs, one right after the other, and is the median of their ratios:
the machine may be shared. d = 64, one head, float32.
"""

import json
import math
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

from core import longmap
from core.figures import longmap as picture

LONG = 131_072
PAIRS = {16_384: 7, 32_768: 5, 65_536: 3}


def draw(S: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(S, 64, generator=torch.Generator().manual_seed(seed))


def timed(what, *given, clock=time.perf_counter) -> float:
    start = clock()
    what(*given)
    return clock() - start


def against_sdpa(S: int, pairs: int, causal: bool, **options) -> dict:
    """The exact map and `F.scaled_dot_product_attention` of the same q and k, in turn."""
    q, k, v = (draw(S, seed) for seed in range(3))
    four = [x[None, None] for x in (q, k, v)]
    ours = lambda: longmap.attention_map(q, k, causal=causal, **options)  # noqa: E731
    theirs = lambda: F.scaled_dot_product_attention(*four, is_causal=causal)  # noqa: E731
    ours()
    theirs()
    found = [(timed(ours), timed(theirs)) for _ in range(pairs)]
    return {
        "map_s": round(statistics.median(a for a, _ in found), 3),
        "sdpa_s": round(statistics.median(b for _, b in found), 3),
        "ratio": round(statistics.median(a / b for a, b in found), 3),
        "ratios": [round(a / b, 3) for a, b in found],
    }


def status(name: str) -> float:
    """A line of this process's memory, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    return math.nan


def both(what, *given) -> tuple[float, float]:
    """Seconds on the wall, and seconds that cores were busy with it."""
    busy = []
    wall = timed(lambda: busy.append(timed(what, *given, clock=time.process_time)))
    return wall, busy[0]


def long_one() -> dict:
    """S = 131,072 in a process of its own: peak memory above the inputs, and time over 32,768."""
    q, k = draw(LONG), draw(LONG, 1)
    short = q[: LONG // 4].clone(), k[: LONG // 4].clone()
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    coarse = statistics.median(timed(lambda: next(longmap.refine(q, k))) for _ in range(3))
    quick = [both(longmap.attention_map, *short)]
    maps = []
    took = both(lambda: maps.append(longmap.attention_map(q, k)))
    quick.append(both(longmap.attention_map, *short))
    peak, m = status("VmHWM") - before, maps[0]
    window = [timed(m.window, i * 1000, i * 900, 512, 512) for i in range(21)]
    depth = {}
    for n in (1024, 4096, 16_384):
        times = [timed(m.region, 5000, 9000, n, n) for _ in range(3)]
        depth[n] = round(1000 * statistics.median(times), 1)
    top = [timed(m.strongest, i * 6000) for i in range(9)]
    wall, busy = (took[n] / statistics.mean(one[n] for one in quick) for n in (0, 1))
    return {
        "S": LONG,
        "map_s": round(took[0], 2),
        "over_32768": round(wall, 2),
        "over_32768_in_time_of_the_cores": round(busy, 2),
        "peak_above_inputs_mb": round(peak),
        "coarse_s": round(coarse, 3),
        "window_512_ms": round(1000 * statistics.median(window), 2),
        "region_512_tiles_of_n_ms": depth,
        "strongest_ms": round(1000 * statistics.median(top), 2),
    }


def needles() -> dict:
    """768 cells of weight above 0.3 in 12 heads of 1,024: seen in a picture of 128 × 128."""
    from tests.core.test_longmap import needles as hidden

    q, k, places = hidden()
    m = longmap.attention_map(q, k, tiles=128, scale=1.0)
    levels = picture.levels(m.tiles.numpy()).astype(int)
    calm = int(picture.levels(np.array([1 / 1024]))[0])
    seen = sum(bool(levels[h, i // 8, j // 8] > calm + 50) for h, i, j in places)
    nearest = sum(i % 8 == 4 and j % 8 == 4 for _, i, j in places)
    return {"needles": len(places), "seen": seen, "seen_in_nearest_samples": nearest}


def precision() -> dict:
    """The largest relative error of a pooled value against float64, for three sizes of scores."""
    found = {}
    for factor in (1.0, 4.0, 400.0):
        q, k = draw(2048), draw(2048, 1)
        scores = q.double() @ k.double().T * (factor / 8)
        right = scores.softmax(-1).view(512, 4, 512, 4).amax((1, 3))
        tiles = longmap.attention_map(q, k, scale=factor / 8).tiles.double()
        large = right > 1e-36
        found[f"scores times {factor:g}"] = float(((tiles - right).abs() / right)[large].max())
    return found


def measure() -> dict:
    """All figures of the engine."""
    lone = subprocess.run(
        [sys.executable, "-m", "tests.bench.longmap"], capture_output=True, text=True, check=True
    )
    return {
        "full": {S: against_sdpa(S, n, False) for S, n in PAIRS.items()},
        "causal": {S: against_sdpa(S, n, True) for S, n in PAIRS.items()},
        "with_entropy": {16_384: against_sdpa(16_384, 5, False, entropy=True)},
        "long": json.loads(lone.stdout),
        "needles": needles(),
        "relative_error": precision(),
    }


if __name__ == "__main__":
    print(json.dumps(long_one()))
