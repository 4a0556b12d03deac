"""Long maps in a real browser: first picture, zoom and pan to painted, bytes, heap, and needles;
and the same (12, S, S) weights drawn by a Plotly heatmap.

Times are taken inside the page: from the event until the frame that shows its answer.
"""

import importlib.util
import io
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from playwright.sync_api import TimeoutError as TooLong
from playwright.sync_api import sync_playwright

from tests.browser.conftest import IDLE, start_server, stop_server
from tests.browser.conftest import chromium as find_chromium

LONGEST = 131_072
ARROWS = ("ArrowDown", "ArrowRight")
HEADS, NEEDLES = 12, 64
VIEWER = {"width": 1280, "height": 1000}

# Runs in the page: finds the map in its shadow root, and waits for what it says of itself.
WATCH = """() => {
  const find = (node) => node.dataset?.testid === 'map' && !node.hidden ? node
    : [...(node.shadowRoot?.children ?? []), ...node.children].map(find).find(Boolean);
  const map = () => find(document.body);
  const until = (test) => new Promise((done) => {
    const look = () => (test() ? done(performance.now()) : requestAnimationFrame(look));
    look();
  });
  window.bench = {
    map,
    facts: () => ({...map().dataset}),
    // Do something to the map; milliseconds until the picture of the new view is painted.
    async after(act) {
      const before = map().dataset.painted;
      const start = performance.now();
      act();
      return (await until(() => map().dataset.painted !== before)) - start;
    },
    wheel(x, y, amount) {
      const stage = map().querySelector('.stage');
      const {left, top} = stage.getBoundingClientRect();
      const at = {clientX: left + x, clientY: top + y, deltaY: amount};
      return bench.after(() => stage.dispatchEvent(
        new WheelEvent('wheel', {...at, bubbles: true, composed: true, cancelable: true})));
    },
    key(name) {
      const stage = map().querySelector('.stage');
      return bench.after(() => stage.dispatchEvent(
        new KeyboardEvent('keydown', {key: name, bubbles: true, composed: true})));
    },
    click(label) {
      return bench.after(() => map().querySelector(label).click());
    },
    // From the choice of a file until a map is painted.
    chosen() {
      window.drawn = new Promise((done) => {
        const input = document.querySelector('input[type="file"]');
        input.addEventListener('change', () => {
          const start = performance.now();
          until(() => map()?.dataset.painted).then((end) => done(end - start));
        }, {capture: true, once: true});
      });
    },
    // From a key on the slider until a map of S queries is painted.
    async grow(S) {
      const start = performance.now();
      return (await until(() => map()?.dataset.picture?.endsWith(`,${S},${S}`))) - start;
    },
  };
}"""


class Page:
    """One browser page on the map, with the size of each message its socket has received."""

    def __init__(self, browser, address):
        self.page = browser.new_page(viewport=VIEWER)
        self.page.set_default_timeout(180_000)
        self.sizes: list[int] = []
        self.page.on(
            "websocket", lambda s: s.on("framereceived", lambda f: self.sizes.append(len(f)))
        )
        self.page.goto(address)

    def ready(self):
        self.page.wait_for_selector('[data-testid="map"][data-painted]')
        self.page.wait_for_timeout(500)
        self.page.wait_for_selector(IDLE)
        self.page.evaluate(WATCH)
        return self

    @property
    def running(self):
        """The switch of a map in the making."""
        return self.page.get_by_test_id("stCheckbox").filter(has_text="Keep computing")

    def stop(self):
        self.running.locator("label").click()

    def facts(self) -> dict:
        return self.page.evaluate("bench.facts()")

    def received(self, act):
        """What `act` returns, and the bytes that came for it."""
        before = len(self.sizes)
        found = act()
        self.page.wait_for_timeout(250)
        return found, sum(self.sizes[before:])

    def heap(self) -> float:
        session = self.page.context.new_cdp_session(self.page)
        session.send("HeapProfiler.collectGarbage")
        session.send("Performance.enable")
        metrics = session.send("Performance.getMetrics")["metrics"]
        used = next(each["value"] for each in metrics if each["name"] == "JSHeapUsedSize")
        return round(used / 2**20, 1)


def median(numbers):
    return round(statistics.median(numbers), 1)


def first_picture(browser, url, repeats=3) -> dict:
    """The slider moved from S = 65,536 to 131,072, a length nobody has asked for yet."""
    times = []
    for seed in range(repeats):
        shown = Page(browser, f"{url}/map?map_source=needle&map_S=65536&map_seed={1000 + seed}")
        shown.ready()
        shown.stop()
        shown.page.wait_for_timeout(1500)
        shown.page.get_by_role("slider").first.focus()
        waiting = f"window.grown = bench.grow({LONGEST})"
        shown.page.evaluate(f"() => {{ {waiting}; }}")
        shown.page.keyboard.press("ArrowRight")
        times.append(shown.page.evaluate("window.grown"))
        shown.stop()
        shown.page.wait_for_timeout(1000)
        shown.page.close()
    return {"first_coarse_picture_ms": median(times), "first_coarse_picture_all_ms": times}


def zooming(browser, url) -> dict:
    """A finished map at S = 131,072: zooms from the whole to single cells, pans at each depth."""
    start = time.perf_counter()
    shown = Page(browser, f"{url}/map?map_source=needle&map_S={LONGEST}").ready()
    while shown.running.count():
        shown.page.wait_for_timeout(500)
    whole = time.perf_counter() - start
    shown.page.wait_for_timeout(1500)
    depths, times, sizes = [], [], []
    for _ in range(2):
        for _step in range(30):
            took, size = shown.received(lambda: shown.page.evaluate("bench.wheel(260, 300, -160)"))
            facts = shown.facts()
            rows = int(facts["view"].split(",")[2])
            pans = [shown.page.evaluate(f"bench.key('{key}')") for key in ARROWS]
            depths.append({"rows": rows, "block": facts["block"], "coarse": facts["coarse"],
                           "zoom_ms": round(took, 1), "pan_ms": median(pans)})  # fmt: skip
            times += [took, *pans]
            sizes.append(size)
            if rows <= 9:
                break
        shown.page.evaluate("bench.click('.whole')")
    found = {
        "whole_map_s": round(whole, 1),
        "zoom_or_pan_to_painted_ms": median(times),
        "zoom_or_pan_to_painted_worst_ms": round(max(times), 1),
        "view_bytes_most": max(sizes),
        "heap_MB": shown.heap(),
        "by_depth": depths,
    }
    shown.page.close()
    return found


def needle_heads(S: int, seed=0):
    """q, k (12, S, 64) with 64 single-cell needles per head, and where these are."""
    generator = torch.Generator().manual_seed(seed)
    q, k = (torch.randn(HEADS, S, 64, generator=generator) for _ in "qk")
    places = []
    for head in range(HEADS):
        rows = torch.randperm(S, generator=generator)[:NEEDLES]
        cols = torch.randperm(S, generator=generator)[:NEEDLES]
        aim = k[head, cols]
        q[head, rows] = 100 * aim / aim.square().sum(-1, keepdim=True)  # a score of 12.5
        places.append(torch.stack([rows, cols], -1).tolist())
    return q, k, places


def archive(q, k) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, q=q.numpy(), k=k.numpy())
    return buffer.getvalue()


def uploaded(browser, url, q, k) -> tuple[Page, dict]:
    """The map page after an upload: from the choice of the file until all heads are painted."""
    shown = Page(browser, f"{url}/map?map_source=own")
    shown.page.wait_for_selector('input[type="file"]', state="attached")
    shown.page.wait_for_selector('[data-testid="map"]', state="attached")  # its code is there
    shown.page.wait_for_timeout(500)
    shown.page.evaluate(WATCH)
    shown.page.evaluate("bench.chosen()")
    before = len(shown.sizes)
    shown.page.set_input_files(
        'input[type="file"]',
        {"name": "heads.npz", "mimeType": "", "buffer": archive(q, k)},
    )
    took = shown.page.evaluate("window.drawn")
    size = sum(shown.sizes[before:])
    shown.page.wait_for_timeout(1500)
    return shown, {"ms": round(took, 1), "bytes": size}


def needles(browser, url) -> dict:
    """How many of 768 needles in 12 heads of S = 1,024 can be told from what is around them, in the
    pixels of the overview of all heads as the browser has painted them."""
    S = 1024
    q, k, places = needle_heads(S)
    shown, _took = uploaded(browser, url, q, k)
    seen = nearest = 0
    tiles = 112  # of a head in the overview, each way
    sampled = {int((tile + 0.5) * S / tiles) for tile in range(tiles)}
    for head in range(HEADS):
        canvas = f"bench.map().querySelector('[data-head=\"{head}\"] canvas')"
        pixels = _pixels(shown.page.evaluate(f"{canvas}.toDataURL()"))
        far = np.abs(pixels - np.median(pixels.reshape(-1, 3), 0)).sum(-1)
        lit = far > 0.5 * far.max()
        block = -(-S // tiles)
        each = len(pixels) * block / S  # pixels per tile
        for row, col in places[head]:
            y, x = (min(int((at // block + 0.5) * each), len(lit) - 1) for at in (row, col))
            seen += bool(lit[y, x])
            nearest += row in sampled and col in sampled
    shown.page.close()
    return {"needles": HEADS * NEEDLES, "needles_in_sight": seen, "nearest_sampled": nearest}


def _pixels(address: str) -> np.ndarray:
    from base64 import b64decode

    content = b64decode(address.partition(",")[2])
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB")).astype(int)


def plotly(browser, weights, limit_s=60) -> dict:
    """12 heatmaps in one Plotly figure, as a page: time to painted and its bytes."""
    import plotly.graph_objects as go
    from plotly.offline import get_plotlyjs
    from plotly.subplots import make_subplots

    start = time.perf_counter()
    figure = make_subplots(3, 4)
    for head, matrix in enumerate(weights):
        figure.add_trace(go.Heatmap(z=matrix), head // 4 + 1, head % 4 + 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figure.html"
        page_text = figure.to_html(include_plotlyjs=True)
        path.write_text(page_text, "utf-8")
        page = browser.new_page(viewport=VIEWER)
        try:
            page.goto(path.as_uri(), timeout=1000 * limit_s)
            page.wait_for_function(
                "document.querySelectorAll('.heatmaplayer image').length >= 12",
                timeout=1000 * limit_s,
            )
            took = round(1000 * (time.perf_counter() - start), 1)
        except TooLong:
            took = f"more than {limit_s} s"
        page.close()
    return {"ms": took, "bytes": len(page_text.encode()) - len(get_plotlyjs().encode())}


def beside(browser, url, lengths=(128, 256, 512, 1024, 2048)) -> dict:
    """The same weights here and in other viewers, as far as these are installed."""
    found = {}
    for S in lengths:
        q, k, _places = needle_heads(S)
        shown, ours = uploaded(browser, url, q, k)
        shown.page.close()
        weights = torch.softmax(q @ k.transpose(1, 2) / 8, -1).numpy()
        theirs = plotly(browser, weights)
        found[str(S)] = {"here": ours, "plotly": theirs}
        if isinstance(theirs["ms"], float):
            found[str(S)] |= {
                "time_ratio": round(ours["ms"] / theirs["ms"], 4),
                "bytes_ratio": round(ours["bytes"] / theirs["bytes"], 4),
            }
    missing = [n for n in ("bertviz", "treescope") if importlib.util.find_spec(n) is None]
    return {"same_weights": found, "not_installed": missing}


def measure() -> dict:
    """All figures of the map page."""
    with tempfile.TemporaryFile() as log, sync_playwright() as playwright:
        process, url = start_server(log)
        browser = playwright.chromium.launch(**find_chromium())
        try:
            found = {}
            for part in (needles, first_picture, beside, zooming):
                found |= part(browser, url)
            return found
        finally:
            browser.close()
            stop_server(process)
