"""Plain data to Plotly figures. Nothing here knows a sentence: words come from the caller.

>>> import core
>>> sheet = contact_sheet(core.run(core.AttentionConfig(S=4, H=6, d_k=3)))
>>> [trace.name for trace in sheet.data][:3]
['X', 'W<sub>Q</sub>', 'Q']
"""

from core.figures.contact_sheet import contact_sheet
from core.figures.heatmap import heatmap
from core.figures.theme import CONFIG

__all__ = ["CONFIG", "contact_sheet", "heatmap"]
