"""Plain data to Plotly figures. Nothing here knows a sentence: words come from the caller.

>>> import core
>>> sheet = contact_sheet(core.run(core.AttentionConfig(S=4, H=6, d_k=3)))
>>> [trace.name for trace in sheet.data][:3]
['X', 'W_Q', 'Q']
"""

from core.figures.contact_sheet import contact_sheet
from core.figures.curves import Points, Series, bars, curves, histogram, space
from core.figures.frames import step_frames
from core.figures.gallery import head_gallery
from core.figures.heatmap import heatmap
from core.figures.standalone import standalone_html
from core.figures.theme import CONFIG, STILL, palette

__all__ = [
    "CONFIG",
    "STILL",
    "Points",
    "Series",
    "bars",
    "contact_sheet",
    "curves",
    "head_gallery",
    "heatmap",
    "histogram",
    "palette",
    "space",
    "standalone_html",
    "step_frames",
]
