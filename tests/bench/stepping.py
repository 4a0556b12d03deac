"""The step-through page in a real browser: key to painted, change to repainted, bytes, opening.

Times are taken inside the page: from the key event (or the change) until the frame that shows its
result has been painted. Medians over repeats.
"""

import statistics
import tempfile

from playwright.sync_api import sync_playwright

from tests.browser.conftest import IDLE, start_server, stop_server
from tests.browser.conftest import chromium as find_chromium

# Runs in the page. `painted` resolves once the next frame is on screen.
WATCH = """() => {
  const root = () => {
    const walk = (node) => {
      if (node.dataset?.testid === 'microscope') return node;
      for (const child of [...(node.shadowRoot?.children ?? []), ...node.children]) {
        const found = walk(child);
        if (found) return found;
      }
    };
    return walk(document.body);
  };
  const painted = () => new Promise((done) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => done(performance.now());
    port2.postMessage(0);
  }));
  window.bench = {
    root,
    async key(name) {
      const start = performance.now();
      const press = {key: name, code: name, bubbles: true, composed: true};
      document.body.dispatchEvent(new KeyboardEvent('keydown', press));
      return (await painted()) - start;
    },
    async click(r, c) {
      const grid = root().querySelector(`[data-matrix="${root().dataset.symbol}"]`);
      const cell = grid.querySelector(`[data-cell="${r},${c}"]`);
      const start = performance.now();
      cell.dispatchEvent(new MouseEvent('click', {bubbles: true, composed: true}));
      return (await painted()) - start;
    },
    until(test) {
      return new Promise((done) => {
        const look = () => (test() ? painted().then(done) : requestAnimationFrame(look));
        look();
      });
    },
    // From the next key on a slider until the microscope shows a matrix of another size.
    watchRows() {
      const rows = () => root()?.querySelector('[data-matrix]')?.dataset.rows;
      const before = rows();
      window.changed = new Promise((done) => {
        addEventListener('keydown', () => {
          const start = performance.now();
          window.bench.until(() => rows() && rows() !== before).then((end) => done(end - start));
        }, {once: true, capture: true});
      });
    },
  };
}"""


class Page:
    """One browser page on the app, with the bytes its socket has received."""

    def __init__(self, browser, address):
        self.page = browser.new_page(viewport={"width": 1280, "height": 800})
        self.received = 0
        self.page.on("websocket", lambda socket: socket.on("framereceived", self._count))
        self.page.goto(address)
        self.settle()
        self.page.evaluate(WATCH)

    def _count(self, payload):
        self.received += len(payload)

    def settle(self):
        self.page.wait_for_selector('[data-testid="microscope"]', timeout=60_000)
        self.page.wait_for_timeout(400)
        self.page.wait_for_selector(IDLE, timeout=60_000)

    def slide(self, label, key):
        """Press an arrow on a slider; milliseconds until the new size is painted, and the bytes."""
        before = self.received
        self.page.get_by_role("slider", name=label).first.focus()
        self.page.evaluate("bench.watchRows()")
        self.page.keyboard.press(key)
        took = self.page.evaluate("window.changed")
        self.settle()
        return took, self.received - before


def median(numbers):
    return round(statistics.median(numbers), 1)


def clicking(shown, pause) -> list[float]:
    """20 clicks on cells, so many milliseconds apart; without pause they meet the page's reruns."""
    times = []
    for i in range(20):
        shown.page.wait_for_timeout(pause)
        times.append(shown.page.evaluate(f"bench.click({i % 4}, {i % 3})"))
    return times


def stepping(browser, url) -> dict:
    """Key and click to painted at the opening example; presses that register."""
    shown = Page(browser, url)
    keys = [shown.page.evaluate(f"bench.key('Arrow{way}')") for way in ["Right", "Left"] * 20]
    shown.page.keyboard.press("End")
    clicks = {pause: clicking(shown, pause) for pause in (300, 0)}
    shown.page.close()
    # 21 steps with two heads: 20 presses reach the last
    shown = Page(browser, f"{url}/?S=4&H=6&h=2&project=1")
    for _ in range(20):
        shown.page.keyboard.press("ArrowRight")
    reached = int(shown.page.evaluate("bench.root().dataset.step"))
    shown.page.close()
    return {
        "key_to_painted_ms": median(keys),
        "click_to_painted_ms": median(clicks[300]),
        "click_to_painted_without_pause_ms": median(clicks[0]),
        "steps_after_20_presses": reached,
    }


def changing(browser, url) -> dict:
    """A slider moved to the new matrix painted, S = 4 … 16, H = 32."""
    shown = Page(browser, f"{url}/?S=4&H=32&h=4")
    ups = [shown.slide("S, sequence length", "ArrowRight") for _ in range(12)]
    downs = [shown.slide("S, sequence length", "ArrowLeft") for _ in range(12)]
    shown.page.close()
    return {
        "slider_to_repainted_ms": median([took for took, _ in ups + downs]),
        "slider_bytes": int(statistics.median(size for _, size in ups + downs)),
    }


def large(browser, url) -> dict:
    """GPT-2 small at S = 128: a change to repainted, and what comes over the socket."""
    shown = Page(browser, f"{url}/?S=128&H=768&h=12&project=1&causal=1")
    opened = shown.received
    moved = [shown.slide("S, sequence length", way) for way in ["ArrowLeft", "ArrowRight"] * 4]
    stepped = shown.received
    for _ in range(5):
        shown.page.keyboard.press("ArrowRight")
    shown.settle()
    result = {
        "gpt2_change_to_repainted_ms": median([took for took, _ in moved]),
        "gpt2_change_bytes": max(size for _, size in moved),
        "gpt2_open_bytes": opened,
        "gpt2_bytes_for_5_steps": shown.received - stepped,
    }
    shown.page.close()
    return result


# Runs before the page: notes when the frame with the first cell has been painted. Waiting for the
# cell from outside would add up to half a second between two looks.
FIRST = """
  const cell = (node) => {
    if (node.dataset?.cell) return true;
    return [...(node.shadowRoot?.children ?? []), ...node.children].some(cell);
  };
  window.opened = new Promise((done) => {
    const look = () => {
      if (!document.body || !cell(document.body)) return requestAnimationFrame(look);
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => done(performance.now());
      port2.postMessage(0);
    };
    requestAnimationFrame(look);
  });
"""


def opening(browser, url, repeats=9) -> dict:
    """From the address to the first cell painted, in a fresh profile, on a warm server.

    The microscope listens to keys before it draws. The first visit of all is not counted: the
    server then reads Streamlit's files from the disk.
    """
    times = []
    for _ in range(repeats + 1):
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        page = context.new_page()
        page.add_init_script(FIRST)
        page.goto(url, wait_until="commit")
        times.append(page.evaluate("window.opened"))
        context.close()
    return {"open_to_interactive_ms": median(times[1:])}


def measure() -> dict:
    """All figures of the step-through page."""
    with tempfile.TemporaryFile() as log, sync_playwright() as playwright:
        process, url = start_server(log)
        browser = playwright.chromium.launch(**find_chromium())
        try:
            found = opening(browser, url)
            for part in (stepping, changing, large):
                found |= part(browser, url)
            return found
        finally:
            browser.close()
            stop_server(process)
