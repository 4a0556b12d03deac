"""Labels and prose: both languages complete, with the same placeholders."""

import ast
import re
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.pofile import read_po

from parts import text

ROOT = Path(__file__).resolve().parents[1]
CATALOGS = sorted((ROOT / "assets/locale/zh_CN/LC_MESSAGES").glob("*.po"))
SOURCES = sorted((ROOT / "pages").rglob("*.py"))
ENGLISH, CHINESE = ROOT / "assets/text/en", ROOT / "assets/text/zh"
PROSE = sorted(str(path.relative_to(ENGLISH)) for path in ENGLISH.rglob("*.md"))


def labels(path: Path) -> set[str]:
    """The literal messages given to `_` and `N_` in one file."""
    return {
        node.args[0].value
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("_", "N_")
        and node.args
        and isinstance(node.args[0], ast.Constant)
    }


def messages() -> set[str]:
    from core.dims import DIMS
    from core.errors import SENTENCES

    return (
        set().union(*map(labels, [*SOURCES, ROOT / "app.py"]))
        | {dim.name for dim in DIMS.values()}
        | set(SENTENCES.values())
    )


def entries() -> list[tuple[str, str, str]]:
    """(catalog, message, translation) of all catalogs."""
    return [
        (path.name, message.id, message.string)
        for path in CATALOGS
        for message in read_po(path.open("rb"), locale="zh_CN")
        if message.id
    ]


def placeholders(message: str) -> set[str]:
    return {field for _literal, field, _spec, _conversion in Formatter().parse(message) if field}


def test_every_label_has_a_chinese_entry():
    missing = messages() - {message for _catalog, message, string in entries() if string}
    assert sorted(missing) == []


def test_a_translation_has_the_placeholders_of_its_message():
    wrong = [
        (catalog, message)
        for catalog, message, string in entries()
        if placeholders(message) != placeholders(string)
    ]
    assert wrong == []


def test_catalogs_agree_where_they_overlap():
    seen: dict[str, str] = {}
    clashes = [
        (catalog, message)
        for catalog, message, string in entries()
        if seen.setdefault(message, string) != string
    ]
    assert clashes == []


def test_both_languages_have_the_same_prose_files():
    assert sorted(str(path.relative_to(CHINESE)) for path in CHINESE.rglob("*.md")) == PROSE


@pytest.mark.parametrize("name", PROSE)
def test_both_languages_use_the_same_placeholders(name):
    found = [
        set(re.findall(r"\{\{(\w+)\}\}", (folder / name).read_text("utf-8")))
        for folder in (ENGLISH, CHINESE)
    ]
    assert found[0] == found[1]


def test_a_label_is_found_in_the_merged_catalogs(monkeypatch):
    monkeypatch.setattr(text, "language", lambda: "zh")
    assert text._("sequence length") == "序列长度"
    assert text._("not a label of ours") == "not a label of ours"
    monkeypatch.setattr(text, "language", lambda: "en")
    assert text._("sequence length") == "sequence length"


def test_prose_fills_in_its_placeholders(monkeypatch, tmp_path):
    (tmp_path / "text/en").mkdir(parents=True)
    (tmp_path / "text/en/sample.md").write_text("{{S}} rows of $d_{k}$ = {{d_k}}\n", "utf-8")
    monkeypatch.setattr(text, "ASSETS", tmp_path)
    monkeypatch.setattr(text, "language", lambda: "en")
    text._markdown.cache_clear()
    assert text.prose("sample", S=4, d_k=3) == "4 rows of $d_{k}$ = 3"
    with pytest.raises(KeyError, match="d_k"):
        text.prose("sample", S=4)
    text._markdown.cache_clear()


@pytest.mark.parametrize(
    ("locale", "expected"),
    [("zh-CN", "zh"), ("zh_TW", "zh"), ("zh", "zh"), ("en-US", "en"), ("de", "en"), (None, "en")],
)
def test_the_browsers_locale_names_a_language(monkeypatch, locale, expected):
    class Context:
        pass

    Context.locale = locale
    monkeypatch.setattr(text.st, "context", Context)
    assert text.browser_language() == expected
