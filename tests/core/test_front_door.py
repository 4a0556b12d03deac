"""`import core` stays light: what few need is imported when it is first asked for."""

import subprocess
import sys

import pytest

import core

LIGHT = """
import sys, core
heavy = {"transformers", "plotly", "streamlit", "core.translator", "core.longmap", "core.models"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
said = core.translator.load().translate("the cat sits on the mat")
assert said == ["猫", "坐", "在", "垫子", "上"]
assert core.longmap.attention_map is sys.modules["core.longmap"].attention_map
assert core.models.load is sys.modules["core.models"].load
assert not {"transformers", "plotly", "streamlit"} & set(sys.modules)
"""


def test_the_rooms_open_on_demand():
    ran = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_what_is_not_there_is_named():
    with pytest.raises(AttributeError, match="no attribute 'utils'"):
        _ = core.utils
