"""A tiny English–Chinese translator that was really trained, small enough to read every matrix.

Its weights are read on the first `load()`, not when the engine is imported.

>>> load().translate("the cat sits on the mat")
['猫', '坐', '在', '垫子', '上']
"""

from core.translator.translator import Edits, Run, Translator, load

__all__ = ["Edits", "Run", "Translator", "load"]
