"""The server: an ASGI app around pages/shell.py.

Adds what Streamlit alone does not: security headers on every answer, the files under assets/, a
health check, and a warm-up, so that the first visitor does not wait for torch.
Started by `streamlit run app.py`, or `uvicorn app:app --port 8501`.
"""

import asyncio
import gc
import logging
import re
import sys
from base64 import b64encode
from contextlib import asynccontextmanager
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

ROOT = Path(__file__).resolve().parent

# Streamlit puts pages/ on the path for each run and takes it off after: of two visitors at once,
# the first to finish would take it from the other. So it stays.
sys.path[:0] = [str(ROOT), str(ROOT / "pages")]


def inline_scripts(html: str) -> str:
    """The CSP sources, by hash, of the scripts written into a page.

    >>> inline_scripts("<script>1</script>")
    "'sha256-a4ayc/80/OGda4BO/1o/V0etpOqiLx1JwB5S3beHW0s='"
    """
    bodies = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digests = (b64encode(sha256(body.encode()).digest()).decode() for body in bodies)
    return " ".join(f"'sha256-{digest}'" for digest in digests)


PAGE = Path(st.__file__).parent / "static"  # Streamlit's own
SCRIPTS = inline_scripts((PAGE / "index.html").read_text("utf-8"))
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Content-Security-Policy": "; ".join(
        (
            "default-src 'self'",
            # blob: is how Streamlit loads a component's JavaScript.
            f"script-src 'self' blob: {SCRIPTS}",
            "style-src 'self' 'unsafe-inline'",  # its styles are written into the page
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "worker-src 'self' blob:",
            "object-src 'none'",
            "base-uri 'self'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        )
    ),
}


class SecurityHeaders:
    """Puts HEADERS on every HTTP answer. Plain ASGI, so that websockets pass untouched."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        async def send_with_headers(message):
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self.app(scope, receive, send if scope["type"] != "http" else send_with_headers)


class Linked:
    """Links frame.css and history.js from Streamlit's page: the first thing painted is styled
    already, and the first change of the address is in our hands.

    Only for requests of a document, which are then answered uncompressed: it is 8 kB.
    """

    LINKS = (
        b'<link rel="stylesheet" href="./assets/frame/frame.css">'
        b'<script src="./assets/frame/history.js"></script></head>'
    )

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        headers = Headers(scope=scope) if scope["type"] == "http" else {}
        if "text/html" not in headers.get("accept", ""):
            return await self.app(scope, receive, send)
        plain = [pair for pair in scope["headers"] if pair[0] != b"accept-encoding"]
        start = None

        async def send_linked(message):
            nonlocal start
            if message["type"] == "http.response.start":
                start = message
                return
            if start:
                body = message.get("body", b"")
                linked = body.replace(b"</head>", self.LINKS, 1)
                if linked != body:
                    sent = MutableHeaders(scope=start)
                    longer = int(sent["content-length"]) + len(linked) - len(body)
                    sent["content-length"] = str(longer)
                    message = message | {"body": linked}
                await send(start)
                start = None
            await send(message)

        await self.app(scope | {"headers": plain}, receive, send_linked)


class Kept:
    """Answers for Streamlit's own files from memory: a first visit asks for some 110 of them.

    Their names carry a hash of what is in them, so an answer never changes. Only whole answers
    are kept, and only for addresses that name a file: 25 MB if somebody asked for all of them.
    """

    FILES = frozenset(f"/{path.relative_to(PAGE).as_posix()}" for path in PAGE.glob("static/*/*"))

    def __init__(self, app):
        self.app = app
        self.answers = {}

    async def __call__(self, scope, receive, send):
        path = scope["path"] if scope["type"] == "http" else ""
        plain = path in self.FILES and scope["method"] == "GET"
        if not plain or {b"range", b"if-none-match"} & dict(scope["headers"]).keys():
            return await self.app(scope, receive, send)
        if path not in self.answers:
            messages = []

            async def keep(message):
                messages.append(message)
                await send(message)

            await self.app(scope, receive, keep)
            if messages[0]["status"] == 200:
                self.answers[path] = messages
            return
        for message in self.answers[path]:
            await send(message)


class Assets(StaticFiles):
    """Files that a browser keeps but asks about each time (ETag): no stale script on an update."""

    def file_response(self, *args, **kwargs):
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "no-cache"
        return response


async def health(request):
    """Answers only once the warm-up is done, as the server does not listen before."""
    return PlainTextResponse("ok", headers={"Cache-Control": "no-store"})


def warm_up() -> None:
    """Import what the pages import and run one small trace; then hide all of it from the garbage
    collector, which else would walk half a million objects of torch and Plotly each time."""
    for package in ("core", "parts"):
        for module in walk_packages(import_module(package).__path__, f"{package}."):
            try:
                import_module(module.name)
            except ImportError:  # costs the pages that use it, not the whole server
                logging.getLogger(__name__).exception("%s cannot be imported", module.name)
    for tongue in sys.modules["parts.text"].LANGUAGES:
        sys.modules["parts.text"].catalog(tongue)
    core = sys.modules["core"]
    core.run(core.AttentionConfig(S=4, H=6, d_k=3))
    gc.collect()
    gc.freeze()


@asynccontextmanager
async def lifespan(app):
    await asyncio.to_thread(warm_up)
    yield


def apologise(error: Exception) -> bool:
    """A defect of ours, already logged by Streamlit: one sentence to the reader, no traceback."""
    from parts.text import _

    st.error(_("Something went wrong on this page. Reload it: the address keeps your settings."))
    return True


app = st.App(
    ROOT / "pages/shell.py",
    middleware=[Middleware(Kept), Middleware(SecurityHeaders), Middleware(Linked)],
    routes=[
        Route("/health", health),
        Mount("/assets", Assets(directory=ROOT / "assets")),
    ],
    lifespan=lifespan,
    on_script_error=apologise,
)
