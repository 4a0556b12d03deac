"""Figures of the README: modules with `measure() -> dict`, run by `python -m tests.bench`."""
