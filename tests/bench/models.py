"""The Model page: MiniLM from cold, a further sentence, 512 tokens, and memory over 200 sentences.

`shown` is what a visitor waits for: in a browser, on a fresh server, from asking for the page (or
from leaving the changed sentence) until the sheet of all heads is drawn with the new tokens.
"""

import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time

from playwright.sync_api import sync_playwright

from tests.browser.conftest import IDLE, start_server, stop_server
from tests.browser.conftest import chromium as find_chromium

WORDS = "the cat sat on a mat by the river bank and watched two boats pass under an old bridge in"
SENTENCE = " ".join(WORDS.split()[:20]) + " may ."  # 22 words and two special tokens: 24 tokens
# A process that has imported what the server imports at its start.
COLD = """
import time, core, core.models
from core.manifest import manifest
start = time.perf_counter()
model = core.models.load("MiniLM")
loaded = time.perf_counter()
reading = core.models.read(model, %r)
manifest(reading.calls[0].head(0))
print(loaded - start, time.perf_counter() - start, len(reading.tokens))
"""


def cold() -> dict:
    """Seconds in a fresh process; the median of three."""
    runs = []
    for _run in range(3):
        out = subprocess.run(
            [sys.executable, "-c", COLD % SENTENCE], capture_output=True, text=True, check=True
        )
        runs.append([float(x) for x in out.stdout.split()])
    load, whole, tokens = (statistics.median(column) for column in zip(*runs, strict=True))
    return {
        "load_minilm_cold_s": round(load, 2),
        "load_read_and_describe_cold_s": round(whole, 2),
        "tokens": int(tokens),
    }


def resident() -> float:
    """Megabytes of this process in memory."""
    with open(f"/proc/{os.getpid()}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def sentences() -> dict:
    """A further sentence, and what 200 of them leave behind."""
    from core import models

    model = models.load("MiniLM")
    models.read(model, SENTENCE)
    times, memory = [], []
    for number in range(200):
        start = time.perf_counter()
        reading = models.read(model, f"{SENTENCE} number {number}")
        reading.calls[number % 6].head(number % 12)
        times.append(time.perf_counter() - start)
        if number % 50 == 49:
            gc.collect()
            memory.append(round(resident()))
    start = time.perf_counter()
    reading = models.read(model, "cat " * 510)
    long = time.perf_counter() - start
    for number in range(16):  # more than the shelf holds
        models.read(model, f"dog {number} " + "cat " * 500)
    gc.collect()
    return {
        "further_sentence_s": round(statistics.median(times), 3),
        "further_sentence_slowest_s": round(max(times), 3),
        "memory_after_50_100_150_200_sentences_mb": memory,
        "read_512_tokens_s": round(long, 2),
        "kept_readings_mb": round(sum(n for _x, n in models.reading._shelf.held.values()) / 1e6),
        "memory_after_16_of_512_tokens_mb": round(resident()),
    }


# Runs in the page: resolves with the milliseconds from the next Control+Enter (or, without a wait
# for a key, from the address) to the painted frame that says the number of tokens and draws the
# sheet of all heads anew.
DRAWN = """([tokens, key]) => {
  const picture = () => document.querySelector('.js-plotly-plot .heatmaplayer image')?.href.baseVal;
  const said = () => document.body?.innerText.includes(`Tokens: ${tokens}\\n`);
  const before = picture();
  window.drawn = new Promise((done) => {
    const watch = (start) => {
      const look = () => {
        if (!picture() || picture() === before || !said()) return requestAnimationFrame(look);
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => done(performance.now() - start);
        port2.postMessage(0);
      };
      requestAnimationFrame(look);
    };
    if (!key) return watch(0);
    const pressed = (event) => {
      if (event.key !== 'Enter') return;
      removeEventListener('keydown', pressed, true);
      watch(performance.now());
    };
    addEventListener('keydown', pressed, true);
  });
}"""


def shown() -> dict:
    """In a browser, until all heads of 24 tokens are drawn."""
    with tempfile.TemporaryFile() as log, sync_playwright() as playwright:
        process, url = start_server(log)
        browser = playwright.chromium.launch(**find_chromium())
        try:
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(url)
            page.wait_for_selector(IDLE, timeout=60_000)
            page.goto(f"{url}/model?model_text={SENTENCE}", wait_until="commit")
            page.evaluate(DRAWN, [24, False])
            first = page.evaluate("window.drawn")
            times = []
            for number in range(1, 10):
                page.wait_for_selector(IDLE, timeout=60_000)
                page.wait_for_timeout(800)
                field = page.get_by_role("textbox", name="Sentence", exact=True)
                field.fill(SENTENCE + " and" * number)
                page.evaluate(DRAWN, [24 + number, True])
                field.press("Control+Enter")
                times.append(page.evaluate("window.drawn"))
            return {
                "page_shown_cold_s": round(first / 1000, 2),
                "further_sentence_shown_s": round(statistics.median(times) / 1000, 2),
                "further_sentence_shown_slowest_s": round(max(times) / 1000, 2),
            }
        finally:
            browser.close()
            stop_server(process)


def measure() -> dict:
    """All figures of the Model page; empty where MiniLM is not installed."""
    from core import models

    if models.minilm() is None:
        return {}
    return cold() | sentences() | shown()
