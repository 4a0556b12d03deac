"""Run the benchmarks and print one JSON object: `python -m tests.bench [names …]`.

A benchmark is a module beside this one with `measure() -> dict`. With `--out FILE` the object is
written to a file as well. What the machine is stands beside the figures; who it is does not.
"""

import argparse
import importlib
import json
import os
import pkgutil
import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path

import tests.bench

PACKAGES = ("torch", "numpy", "streamlit", "plotly", "transformers")


def names() -> list[str]:
    """Every module here that can be measured."""
    found = [module.name for module in pkgutil.iter_modules(tests.bench.__path__)]
    return [name for name in found if not name.startswith("_")]


def machine() -> dict:
    """What the figures depend on."""
    import torch

    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "threads of torch": torch.get_num_threads(),
        "load at the start": load,
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(names())}; all by default")
    parser.add_argument("--out", type=Path, help="a file to write the JSON to")
    asked = parser.parse_args()
    unknown = set(asked.names) - set(names())
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}: there are {', '.join(names())}")
    found = {"machine": machine()}
    for name in asked.names or names():
        module = importlib.import_module(f"tests.bench.{name}")
        start = time.perf_counter()
        print(f"{name} …", file=sys.stderr, flush=True)
        found[name] = module.measure()
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    text = json.dumps(found, indent=2, ensure_ascii=False)
    print(text)
    if asked.out:
        asked.out.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
