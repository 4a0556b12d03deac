"""The shape of the house, read from its source: who may import whom, and how large a page may be.

Import direction: app -> pages -> core. See CONTRIBUTING.md.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "pages").glob("*.py"))
PARTS = sorted((ROOT / "pages/parts").rglob("*.py"))
CORE = sorted((ROOT / "core").rglob("*.py"))
SOURCE = [ROOT / "app.py", *PAGES, *PARTS, *CORE]
PAGE_NAMES = {path.stem for path in PAGES}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imports(path: Path) -> set[str]:
    """Full dotted names of all that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name(path)}: relative import"
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def packages(path: Path) -> set[str]:
    return {module.partition(".")[0] for module in imports(path)}


def users(package: str) -> set[str]:
    return {name(path) for path in SOURCE if package in packages(path)}


def in_figures(path: Path) -> bool:
    return path.is_relative_to(ROOT / "core/figures")


@pytest.mark.parametrize("path", CORE, ids=name)
def test_core_imports_neither_pages_nor_the_server(path):
    forbidden = {"app", "parts", "pages", "streamlit", "starlette", "babel"} | PAGE_NAMES
    own = {path.stem for path in CORE}
    assert packages(path) & (forbidden - own) == set()


@pytest.mark.parametrize("path", [path for path in CORE if not in_figures(path)], ids=name)
def test_only_figures_know_figures(path):
    assert not any(module.startswith("core.figures") for module in imports(path))


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_a_page_imports_no_other_page(path):
    assert packages(path) & (PAGE_NAMES | {"app", "pages"}) == set()


@pytest.mark.parametrize("path", PARTS, ids=name)
def test_parts_import_no_page(path):
    assert packages(path) & (PAGE_NAMES | {"app", "pages"}) == set()


def test_torch_is_used_in_core_only():
    assert all(user.startswith("core/") for user in users("torch"))


def test_plotly_is_used_in_figures_only():
    assert all(user.startswith("core/figures/") for user in users("plotly"))


def test_streamlit_is_used_in_the_server_and_pages_only():
    assert all(user == "app.py" or user.startswith("pages/") for user in users("streamlit"))


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_a_page_is_short(path):
    assert len(path.read_text("utf-8").splitlines()) <= 80


def test_no_file_is_called_utils():
    assert not [name(path) for path in SOURCE if path.stem in ("utils", "helpers", "common")]


@pytest.mark.parametrize("path", SOURCE, ids=name)
def test_every_module_says_what_it_is_for(path):
    assert ast.get_docstring(ast.parse(path.read_text("utf-8")))


def test_no_marker_is_left_in_the_code():
    markers = ["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"]
    files = [*SOURCE, *(ROOT / "assets").rglob("*.js"), *(ROOT / "tests").rglob("*.py")]
    left = [
        f"{name(path)}: {marker}"
        for path in files
        for marker in markers
        if marker in path.read_text("utf-8")
    ]
    assert left == []


def test_every_page_is_in_the_menu():
    from parts.frame import PAGES as MENU

    listed = {name for group in MENU.values() for name, _title, _icon in group}
    assert PAGE_NAMES - {"shell"} <= listed
