"""Shared by all tests: the app without a browser."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's top folder."""
    return ROOT


@pytest.fixture
def app_test():
    """The app without a browser: `app_test("heads", lang="zh", S=8)` opens that page with
    `?lang=zh&S=8`, runs it once and returns Streamlit's AppTest. Without a name: the default page.
    """

    def open_page(page: str | None = None, lang: str = "en", **query: object) -> AppTest:
        app = AppTest.from_file(str(ROOT / "pages/shell.py"), default_timeout=60)
        app.query_params.update(lang=lang, **{key: str(value) for key, value in query.items()})
        if page:
            app.switch_page(f"{page}.py")
        app.run()
        assert not app.exception, app.exception[0].message
        return app

    return open_page
