"""The Memory page in a real browser: from a change to its pictures painted, up to 4,096 elements.

Times are taken inside the page: from the click until the frame that shows the result has been
painted, the way through the server included. Medians over repeats.
"""

import statistics
import tempfile
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

from tests.browser.conftest import IDLE, start_server, stop_server
from tests.browser.conftest import chromium as find_chromium

SMALL = {"shape": "1,4,2,3", "chain": "transpose(1,2)"}
LARGE = {"shape": "16,16,16", "chain": "transpose(1,2)"}
ELEVEN = (  # and one more is added: five storages of 4,096 cells
    "permute(2,0,1).transpose(0,1).contiguous().view(8,2,256).flip(1).permute(1,2,0)"
    ".reshape(16,256).t().contiguous().view(16,16,16).permute(1,0,2)"
)
LONG = {"shape": "16,16,16", "chain": ELEVEN}

# Runs in the page. `changed` resolves once another chain, or another stage, has been painted.
WATCH = """() => {
  const find = (node) => {
    if (node.dataset?.testid === 'strides') return node;
    for (const child of [...(node.shadowRoot?.children ?? []), ...node.children]) {
      const found = find(child);
      if (found) return found;
    }
  };
  const painted = () => new Promise((done) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => done(performance.now());
    port2.postMessage(0);
  }));
  window.watchFrom = (name) => {
    const seen = () => Object.values(find(document.body).dataset).join();
    const before = seen();
    window.changed = new Promise((done) => {
      addEventListener(name, () => {
        const start = performance.now();
        const look = () => seen() === before
          ? requestAnimationFrame(look)
          : painted().then((end) => done(end - start));
        look();
      }, { once: true, capture: true });
    });
  };
}"""


class Memory:
    """One browser page on the Memory page."""

    def __init__(self, browser, url, query):
        self.page = browser.new_page(viewport={"width": 1280, "height": 900})
        self.page.goto(f"{url}/memory?{urlencode(query)}")
        self.page.locator('[data-testid="strides"][data-key]').wait_for(timeout=60_000)
        self.settle()
        self.page.evaluate(WATCH)

    def settle(self):
        self.page.wait_for_timeout(400)
        self.page.wait_for_selector(IDLE, timeout=60_000)

    def timed(self, event, act):
        self.page.evaluate(f"watchFrom('{event}')")
        act()
        took = self.page.evaluate("window.changed")
        self.settle()
        return took

    def press(self, name):
        button = self.page.get_by_role("button", name=name, exact=True).first
        return self.timed("click", button.click)


def median(numbers):
    return round(statistics.median(numbers), 1)


def building(browser, url, query, repeats=8) -> list[float]:
    """An operation added and taken back again, each until painted."""
    shown = Memory(browser, url, query)
    times = [shown.press(name) for _ in range(repeats) for name in ("Add", "Undo")]
    shown.page.close()
    return times


def looking(browser, url, query, repeats=8) -> list[float]:
    """Another stage of the same chain, which needs no server."""
    shown = Memory(browser, url, query)
    rows = shown.page.locator('[data-testid="strides"] tbody tr[data-stage] th button')
    times = [
        shown.timed("click", rows.nth(place).click) for _ in range(repeats) for place in (0, 1)
    ]
    shown.page.close()
    return times


def measure() -> dict:
    """All figures of the Memory page, in milliseconds."""
    with tempfile.TemporaryFile() as log, sync_playwright() as playwright:
        process, url = start_server(log)
        browser = playwright.chromium.launch(**find_chromium())
        try:
            return {
                "memory_change_to_painted_ms": median(building(browser, url, SMALL)),
                "memory_4096_change_to_painted_ms": median(building(browser, url, LARGE)),
                "memory_12_operations_4096_to_painted_ms": median(building(browser, url, LONG)),
                "memory_4096_stage_to_painted_ms": median(looking(browser, url, LARGE)),
            }
        finally:
            browser.close()
            stop_server(process)
