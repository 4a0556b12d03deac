"""What holds for every page of the menu, whatever it shows: no complaint from the browser, nothing
serious found by axe-core, nothing wider than a phone."""

from pathlib import Path

import pytest

PAGES = sorted(
    path.stem
    for path in (Path(__file__).parents[2] / "pages").glob("*.py")
    if path.stem not in ("shell", "step_through")
)
PATHS = ["/", *(f"/{name}" for name in PAGES)]
SETTINGS = {
    "desktop-light-en": {"lang": "en"},
    "phone-dark-zh": {"lang": "zh", "dark": True, "phone": True},
}


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("path", PATHS)
def test_page(open_page, no_serious_violations, path, setting):
    page = open_page(path, **SETTINGS[setting])
    assert page.get_by_test_id("stException").count() == 0
    assert page.locator("h1").count() == 1
    main = page.get_by_test_id("stMain")
    assert main.evaluate("(main) => main.scrollWidth - main.clientWidth") <= 0
    no_serious_violations(page)
