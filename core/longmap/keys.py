"""Keys made ready: scaled so that a product with a query is a base-2 logarithm, and centred.

Softmax does not see a number added to a whole row of scores, so the mean key may be taken from all
keys: what is left is shorter, its products are rounded less, and 2 to their power stays in range.

>>> import torch
>>> keys = Keys(torch.tensor([[1.0], [3.0]]), scale=1.0)
>>> keys.wide.tolist(), keys.mean.tolist()
([[-1.4426950408889634], [1.4426950408889634]], [2.0])
"""

from __future__ import annotations

import math
from functools import cached_property

import torch

LOG2E = math.log2(math.e)
# float32 products whose magnitude may pass this are taken in float64: their rounding, relative to
# which the weights are off, would pass 1e-5.
NARROW = 24.0
# Above this, 2 to the power of a score needs the row's maximum taken off, also in float64.
WIDE = 900.0
VIEWS = 8  # layouts whose views are kept


def lengths(rows: torch.Tensor) -> torch.Tensor:
    """How long each row is, ∞ if float32 cannot hold it; NaN counts as 0.

    >>> lengths(torch.tensor([[3.0, 4.0], [math.nan, 1.0]]))
    tensor([5., 0.])
    """
    kind = torch.float64 if rows.dtype == torch.float64 else torch.float32
    found = torch.linalg.vector_norm(rows, dim=-1, dtype=kind)
    return found.nan_to_num_(0.0, posinf=math.inf).float()


class Keys:
    """Keys (T, d) of one head for one scale. `narrow` float32 and `wide` float64, (T, d)."""

    def __init__(self, k: torch.Tensor, scale: float, softcap: float | None = None):
        self.k, self.scale, self._views, self._weaves = k, scale, {}, {}
        # tanh does not commute with adding a number to a row, and takes its argument unscaled.
        self.cap = None if softcap is None else softcap * LOG2E
        self.factor = scale * LOG2E if softcap is None else scale / softcap
        self.mean = torch.zeros_like(k[0], dtype=torch.float64)
        if softcap is None:
            mean = k.mean(0, dtype=torch.float64)
            nan = bool(mean.isnan().any())
            self.mean = k.nanmean(0, dtype=torch.float64).nan_to_num() if nan else mean

    @cached_property
    def wide(self) -> torch.Tensor:
        return (self.k.double() - self.mean) * self.factor

    @cached_property
    def narrow(self) -> torch.Tensor:
        made = torch.empty(self.k.shape, dtype=torch.float32, device=self.k.device)
        for start in range(0, len(made), 8192):  # no second copy in float64
            part = self.k[start : start + 8192].double()
            made[start : start + 8192] = (part - self.mean) * self.factor
        return made

    def views(self, plan, wide: bool) -> list[torch.Tensor]:
        """The keys of each piece of a layout (`sweep.layout`), (d, keys of the piece)."""
        if (plan, wide) not in self._views:
            if len(self._views) >= VIEWS:
                self._views.clear()
            k = self.wide if wide else self.narrow
            self._views[plan, wide] = [k[piece.start : piece.stop].T for piece in plan.pieces]
        return self._views[plan, wide]

    def woven(self, plan, first: int, last: int, wide: bool) -> list[torch.Tensor]:
        """The n-th keys of tiles `first` to `last` for each n, (d, tiles): see `sweep._weave`."""
        if (plan, wide) not in self._weaves:
            self._weaves.clear()
            k, whole = self.wide if wide else self.narrow, plan.whole * plan.size
            k = k[plan.start : plan.start + whole].view(plan.whole, plan.size, -1)
            self._weaves[plan, wide] = k.transpose(0, 1).contiguous()
        return [k[first:last].T for k in self._weaves[plan, wide]]

    @cached_property
    def longest(self) -> float:
        """The length of the longest key of `narrow`; NaN is left out."""
        return float(lengths(self.narrow).max())

    @cached_property
    def given_longest(self) -> float:
        """The same of the keys as they were given."""
        return float(lengths(self.k).max())

    def bound(self, length: float) -> float:
        """No score, uncapped, of queries of this length is further from 0 (Cauchy–Schwarz).

        In powers of 2. A cap comes too late to shorten the rounding: long vectors may have a
        product near 0.
        """
        return length * self.longest * (self.cap or 1.0)

    @cached_property
    def finite(self) -> bool:
        """No NaN among them."""
        return not bool(self.narrow.isnan().any())

    def shift(self, q: torch.Tensor) -> torch.Tensor:
        """What the mean key adds to each row of scores, in nats, float64."""
        return q.double() @ self.mean * self.scale
