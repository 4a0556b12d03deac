"""What the numbers of a reading say about its heads, and the numbers to look at for the cause.

Each finding names the heads it rests on; what to do about it is said by the page.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.models.reading import Reading

LONG = 128  # keys: from here on it is said over how many of them a query spreads
LOOKED = 8  # heads whose scores are computed again for their spread


@dataclass(frozen=True)
class Finding:
    """`id`: "even", "sharp", "sink", "twins", "long", "scale", "fine". `heads`: (call, head).
    `numbers`: what its sentence needs."""

    id: str
    heads: tuple[tuple[int, int], ...]
    numbers: dict


def diagnose(reading: Reading) -> list[Finding]:
    """All findings of a reading, "fine" alone where there is no other."""
    every = [((c, i), f) for c, heads in enumerate(reading.facts) for i, f in enumerate(heads)]
    found = [
        _scale(reading),
        *(_spread(reading, name, [at for at, f in every if getattr(f, flag)])
          for name, flag in (("even", "uniform"), ("sharp", "one_hot"))),
        _sink([(at, f) for at, f in every if f.sink]),
        _twins([(at, f) for at, f in every if f.twin]),
        _long(reading, every),
    ]  # fmt: skip
    kept = [finding for finding in found if finding and finding.heads]
    total = {"total": len(every)}
    kept = [Finding(f.id, f.heads, f.numbers | total | {"count": len(f.heads)}) for f in kept]
    return kept or [Finding("fine", (), total)]


def _scale(reading) -> Finding:
    """Calls whose scale is not 1/√d_k."""
    odd = [
        c for c, call in enumerate(reading.calls)
        if abs(call.scale * call.q.shape[-1] ** 0.5 - 1) > 1e-6
    ]  # fmt: skip
    first = reading.calls[odd[0] if odd else 0]
    d_k = first.q.shape[-1]
    numbers = {"scale": f"{first.scale:.4g}", "usual": f"{d_k**-0.5:.4g}", "d_k": d_k}
    heads = [(c, i) for c in odd for i in range(reading.calls[c].heads)]
    return Finding("scale", tuple(heads), numbers)


def _spread(reading, name, heads) -> Finding | None:
    """Heads near one end, and the standard deviation of what softmax is given there."""
    if not heads:
        return None
    looked = heads[:LOOKED]
    spread = [float(reading.calls[c].head(i)["scaled"].std(unbiased=False)) for c, i in looked]
    call = reading.calls[heads[0][0]]
    numbers = {
        "spread": f"{sum(spread) / len(spread):.2f}",
        "scale": f"{call.scale:.4g}",
        "d_k": call.q.shape[-1],
    }
    return Finding(name, tuple(heads), numbers)


def _sink(found) -> Finding:
    shares = [max(f.first, f.special) for _at, f in found]
    mean = sum(shares) / max(len(shares), 1)
    return Finding("sink", tuple(at for at, _f in found), {"share": f"{mean:.0%}"})


def _twins(found) -> Finding:
    apart = max((f.apart for _at, f in found), default=0.0)
    return Finding("twins", tuple(at for at, _f in found), {"apart": f"{apart:.1%}"})


def _long(reading, every) -> Finding | None:
    """Over how many keys a query spreads: the number whose even share has the same entropy."""
    T = max(call.k.shape[2] for call in reading.calls)
    if T < LONG:
        return None
    keys = [reading.calls[c].k.shape[2] ** f.entropy for (c, _i), f in every]
    numbers = {"T": T, "keys": f"{sum(keys) / len(keys):.0f}", "cells": f"{T * T:,}"}
    return Finding("long", tuple(at for at, _f in every), numbers)
