"""The same weights drawn by others: Plotly's heatmap, BertViz' head view, treescope's arrays.

12 heads of S × S softmax weights, random, float32. Each drawing is made in a process of its own
and opened in headless Chromium: the time from the weights at hand until the browser has painted
them, and the size of the page that holds them. A drawing that takes longer than LIMIT is given up.

Not needed for anything else: `pip install bertviz==1.4.1 treescope==0.1.10` into a place of your
own. BertViz loads three libraries from the net; here they are served from a folder of npm packages
(requirejs@2.3.6, d3@5.7.0, jquery@2.1.4) named by QKV_ELSEWHERE. What is not there is left out.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

HEADS, SIZES, LIMIT = 12, (128, 256, 512, 1024), 60.0
LIBRARIES = {
    "require.js": "requirejs/require.js",
    "d3": "d3/dist/d3.min.js",
    "jquery": "jquery/dist/jquery.min.js",
}
# True once what each one draws stands in the page.
DRAWN = {
    "plotly": f"() => document.querySelectorAll('.heatmaplayer image').length >= {HEADS}",
    "bertviz": "() => document.querySelectorAll('svg line').length > 0",
    "treescope": "() => { const see = (node) => [...node.querySelectorAll('*')].some("
    "(e) => e.tagName === 'CANVAS' || (e.shadowRoot && see(e.shadowRoot))); "
    "return see(document); }",
}


def weights(S: int):
    import torch

    generator = torch.Generator().manual_seed(0)
    return torch.randn(HEADS, S, S, generator=generator).softmax(-1)


def plotly(given) -> str:
    from plotly.subplots import make_subplots

    made = make_subplots(3, 4)
    for head, matrix in enumerate(given.numpy()):
        made.add_heatmap(z=matrix, row=head // 4 + 1, col=head % 4 + 1, showscale=False)
    return made.to_html(include_plotlyjs=True)


def bertviz(given) -> str:
    from bertviz import head_view

    tokens = [str(i) for i in range(given.shape[-1])]
    body = head_view([given[None]], tokens, html_action="return").data
    return f"<!doctype html><meta charset='utf-8'><body>{body}</body>"


def treescope(given) -> str:
    import treescope as drawer

    # Heads above one another; without truncation, or it would leave cells out.
    body = drawer.render_array(given.numpy(), rows=(0, 1), columns=(2,), truncate=False)
    return f"<!doctype html><meta charset='utf-8'><body>{body._repr_html_()}</body>"


def draw(name: str, S: int) -> dict:
    """Make the page of a drawing and time it until it is painted."""
    from playwright.sync_api import sync_playwright

    from tests.browser.conftest import chromium

    given = weights(S)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(**chromium())
        page = browser.new_page()
        page.set_default_timeout(LIMIT * 1000)
        page.route("**/cdnjs.cloudflare.com/**", library)
        start = time.perf_counter()
        file = Path(folder) / "page.html"
        file.write_text(globals()[name](given), "utf-8")
        made = time.perf_counter()
        page.goto(file.as_uri())
        page.wait_for_function(DRAWN[name], polling="raf")
        page.evaluate("() => new Promise((d) => requestAnimationFrame(() => setTimeout(d)))")
        end = time.perf_counter()
        size = file.stat().st_size
        browser.close()
    return {
        "painted_s": round(end - start, 2),
        "of_it_making_the_page_s": round(made - start, 2),
        "bytes": size,
    }


def library(route) -> None:
    """Serve one of BertViz' libraries from the folder of npm packages."""
    name = next(name for name in LIBRARIES if name in route.request.url)
    path = Path(os.environ["QKV_ELSEWHERE"], LIBRARIES[name])
    route.fulfill(body=path.read_text("utf-8"), content_type="text/javascript")


def one(name: str, S: int) -> dict | str:
    command = [sys.executable, "-m", "tests.bench.maps_elsewhere", name, str(S)]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT + 15)
    except subprocess.TimeoutExpired:
        return f"given up after {LIMIT:g} s"
    if found.returncode:
        last = found.stderr.strip().splitlines()[-1:] or ["killed"]
        return f"failed: {last[0][:120]}"
    return json.loads(found.stdout)


def measure() -> dict:
    """All that is installed, smaller sizes first; none larger than the first given up."""
    report = {}
    for name in DRAWN:
        if not find_spec(name) or (name == "bertviz" and "QKV_ELSEWHERE" not in os.environ):
            report[name] = "not installed"
            continue
        report[name] = {}
        for S in SIZES:
            report[name][S] = one(name, S)
            if isinstance(report[name][S], str):
                break
    return report


if __name__ == "__main__":
    print(json.dumps(draw(sys.argv[1], int(sys.argv[2]))))
