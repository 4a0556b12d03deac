"""The whole map of a very long sequence, exact, without ever holding S×S numbers.

Three lines from two tensors to a picture:

    from core.longmap import attention_map
    from core.figures.longmap import figure, save_png
    save_png(attention_map(q, k, causal=True), "map.png")   # or figure(attention_map(q, k)).show()

`attention_map` runs to the end; `refine` is the same as a generator: first a coarse picture from a
sample of the rows, then better and better ones, and it can be stopped and resumed.

>>> import torch
>>> from core import longmap
>>> m = longmap.attention_map(torch.eye(4), torch.eye(4), tiles=2, scale=1.0)
>>> m.tiles                                       # the largest weight in each 2×2 block
tensor([[0.4754, 0.1749],
        [0.1749, 0.4754]])
>>> m.window(0, 0, 1, 4)                          # the weights themselves, of query 0
tensor([[0.4754, 0.1749, 0.1749, 0.1749]])
>>> m.cell(0, 1).raw, round(m.cell(0, 1).weight, 4)
(0.0, 0.1749)
"""

from core.longmap.problem import POOLS
from core.longmap.refining import attention_map, refine
from core.longmap.result import AttentionMap, Cell

__all__ = ["POOLS", "AttentionMap", "Cell", "attention_map", "refine"]
