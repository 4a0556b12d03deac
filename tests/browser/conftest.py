"""A fresh server, a Chromium, and watchers that fail a test on what a reader should never meet.

def test_heads(open_page, no_serious_violations):
    page = open_page("/heads", lang="zh", dark=True, phone=True, S=8)
    no_serious_violations(page)
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

import pytest

ROOT = Path(__file__).resolve().parents[2]
DESKTOP = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
IDLE = (
    '[data-testid="stApp"][data-test-script-state="notRunning"]'
    '[data-test-connection-state="CONNECTED"]'
)
# On a deep link Streamlit asks under the page's own path too where its server is, and gets a 404.
PROBES = re.compile(r"/\w+/_stcore/(health|host-config)$")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def healthy(url: str) -> bool:
    try:
        with urlopen(f"{url}/health", timeout=2) as answer:
            return answer.read() == b"ok"
    except OSError:
        return False


def start_server(log):
    """A server process and its address, once it answers."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    # -P: without the current directory on the path.
    command = [sys.executable, "-P", "-m", "streamlit", "run", str(ROOT / "app.py")]
    command += ["--server.port", str(port), "--server.headless", "true"]
    # Started elsewhere, as nothing may depend on the current directory.
    process = subprocess.Popen(command, cwd=tempfile.gettempdir(), stdout=log, stderr=log)
    deadline = time.monotonic() + 120
    while not healthy(url):
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            log.seek(0)
            raise RuntimeError(f"the server did not start:\n{log.read().decode()}")
        time.sleep(0.2)
    return process, url


def stop_server(process) -> None:
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()


@pytest.fixture(scope="session")
def server():
    """Address of one server for all browser tests of this run, such as http://127.0.0.1:40123."""
    with tempfile.TemporaryFile() as log:
        process, url = start_server(log)
        yield url
        stop_server(process)


@pytest.fixture
def fresh_server():
    """Address of a server that nobody has visited yet."""
    with tempfile.TemporaryFile() as log:
        process, url = start_server(log)
        yield url
        stop_server(process)


def chromium() -> dict:
    """How to launch the Chromium of this machine."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    arguments = ["--disable-gpu", "--disable-background-networking", "--no-first-run"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        arguments.append("--no-sandbox")  # Chromium refuses its sandbox to root
    return {"executable_path": found, "args": arguments}


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args):
    return browser_type_launch_args | chromium()


@pytest.fixture
def complaints(server) -> list[str]:
    """What went wrong behind the pages of this test; the test fails if anything is left in here."""
    found: list[str] = []
    yield found
    assert not found, "\n".join(found)


def watch(context, url: str, complaints: list[str]) -> None:
    """Note errors in the console, exceptions, and requests to any other host."""
    home = urlsplit(url).netloc

    def on_console(message):
        if message.type == "error" and not PROBES.search(message.location["url"]):
            complaints.append(f"console: {message.text} ({message.location['url']})")

    def on_request(request):
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.netloc != home:
            complaints.append(f"request to another host: {request.url}")

    context.on("console", on_console)
    context.on("weberror", lambda error: complaints.append(f"exception: {error.error}"))
    context.on("request", on_request)


@pytest.fixture
def settled():
    """`settled(page)` waits until the app has nothing left to run, and returns the page."""

    def wait(page):
        # A change reaches the server only after a moment; until then the app still looks idle.
        page.wait_for_timeout(150)
        page.wait_for_selector(IDLE, timeout=60_000)
        page.wait_for_selector('[data-testid="stSkeleton"]', state="detached", timeout=60_000)
        return page

    return wait


@pytest.fixture
def open_page(new_context, server, complaints, settled):
    """`open_page("/heads", lang="zh", dark=True, phone=True, locale="zh-CN", S=8)`: a page in a
    browser profile of its own, watched, and returned once the app is idle. Arguments unknown here
    (lang, S) go into the address; `base` names another server than the shared one.
    """

    def open_(path="/", *, dark=False, phone=False, locale="en-US", base=None, **query):
        context = new_context(
            **(PHONE if phone else DESKTOP),
            locale=locale,
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
        )
        watch(context, base or server, complaints)
        page = context.new_page()
        page.goto((base or server) + path + ("?" + urlencode(query) if query else ""))
        page.wait_for_selector("h1", timeout=60_000)
        page.wait_for_selector("html[data-page]", state="attached", timeout=60_000)  # frame.js ran
        return settled(page)

    return open_


@pytest.fixture
def page(open_page):
    """The default page, in English on a light desktop."""
    return open_page("/")


@pytest.fixture
def no_serious_violations():
    """`no_serious_violations(page)`: axe-core finds nothing serious or critical on the page."""
    axe = (files("axe_playwright_python") / "axe.min.js").read_text("utf-8")

    def check(page):
        page.evaluate(axe)
        broken = [
            f"{rule['id']}: {rule['help']}\n    " + "\n    ".join(n["html"] for n in rule["nodes"])
            for rule in page.evaluate("axe.run().then((result) => result.violations)")
            if rule["impact"] in ("serious", "critical")
        ]
        assert not broken, "\n".join(broken)

    return check
