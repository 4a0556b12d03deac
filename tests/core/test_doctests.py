"""The worked examples in the docstrings of `core` give what they say."""

import doctest
import importlib
import pkgutil

import pytest

import core

MODULES = ["core", *(m.name for m in pkgutil.walk_packages(core.__path__, "core."))]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert not failed


def test_the_engine_has_examples():
    for name in ("attention", "checks", "config", "errors", "inputs", "masks", "notices", "ops"):
        module = importlib.import_module(f"core.{name}")
        assert any(test.examples for test in doctest.DocTestFinder().find(module)), name
