"""The web application: a shell, what is shown in it, and events when that has changed.

    /, /run/ID[/VIEW], /compare     the shell: the same page for every address
    /view?at=ADDRESS                what is shown there, as JSON; `Nethook-Have` says what is known
    /events?at=ADDRESS              an event whenever that is another than before
    /fine?run=ID&from=A&to=B        the curves of a run between two steps
    /looks/NAME                     stylesheets and scripts
    /metrics[?run=ID]               numbers of the runs, as Prometheus reads them

The shell comes at once, so that a browser loads plotly.js while the run is read. What is asked for
first is made before: templates are compiled, scripts compressed, a single run is read.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import suppress
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route, Router

from nethook.drawing.rendering.render import payload
from nethook.exporting.openmetrics import CONTENT_TYPE
from nethook.page.folder import Folder
from nethook.page.live.answers import answer_of, digest_of
from nethook.page.live.base_path import answer_with_base, with_base, without_base
from nethook.page.live.guard import Guard
from nethook.page.live.metrics import metrics_of
from nethook.page.live.routes import Views
from nethook.page.markup import asset, compile_templates, looks, render
from nethook.page.urls import Place, read_place
from nethook.text.escape import script_json

EVERY: Final = 1.0
"""Seconds between two looks at a run that is being written."""

_BREATH: Final = 0.1  # seconds after which a stream looks whether the server ends
_REST: Final = 1.0  # seconds after which is read what has not been asked for
_SCRIPTS: Final = ("draw.js", "figures.js", "page.js")
_STYLES: Final = ("looks.css", "page.css")
_LONGEST: Final = 100_000  # characters of what a browser says it has
_KEYS: Final = (
    ("1 … 7", "views of this run"),
    ("[ and ]", "the layer before, the layer after"),
    ("← and →", "a step back, a step on (with Shift: ten)"),
    ("r", "all runs"),
    ("t", "light or dark"),
    ("?", "these keys"),
)
_POLICY: Final = (
    "default-src 'none'; connect-src 'self'; img-src 'self' data: blob:; font-src data:; "
    "style-src 'self' 'unsafe-inline'; script-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)


class Page:
    """Everything that is asked of the page, and the answers.

    Arguments:
        folder: the runs.
        looked: called whenever somebody looks.
        base: the path that the page is under.
    """

    def __init__(self, folder: Folder, looked: Callable[[], None], base: str = "") -> None:
        self._base = base
        self.views = Views(folder)
        self.ending = threading.Event()
        self._looked = looked
        self._files = _files()
        self._packed: dict[str, bytes] = {}
        seal = hashlib.sha256(b"".join(self._files.values())).hexdigest()[:12]
        data = {"seal": seal, "keys": _KEYS, "looks": Markup(looks()), "base": base}
        self._shell = with_base(render("shell.html", data), base)

    def warm(self) -> None:
        """Make what is going to be asked for first; ends early where the server does."""
        compile_templates()
        single = self.views.folder.single
        if single and not self.ending.is_set():
            with suppress(Exception):  # who asks is told
                answer_of(self.views, read_place("/", ""))
        for name, content in self._files.items():
            if not self.ending.is_set():
                self._packed[name] = gzip.compress(content, 6, mtime=0)
        if single:
            self._read_ahead(self.views.settled(read_place("/", "")))

    async def shell(self, request: Request) -> Response:
        """The page itself. The run is read meanwhile: its browser asks for it next."""
        self._looked()
        place = read_place(request.url.path, request.url.query)
        if place.kind == "run" and not self.views.folder.is_open(place.run):
            threading.Thread(target=self._prepare, args=(place,), daemon=True).start()
        return Response(self._shell, media_type="text/html", headers={"Cache-Control": "no-cache"})

    async def view(self, request: Request) -> Response:
        """What is shown at a place, as far as the browser does not have it."""
        self._looked()
        have = _have(request.headers.get("nethook-have", ""))
        made = await run_in_threadpool(answer_of, self.views, self._place(request), have)
        made = answer_with_base(made, self._base)
        # NaN and infinities are no JSON.
        return Response(script_json(made), media_type="application/json", headers=_NOT_KEPT)

    async def events(self, request: Request) -> Response:
        """A line whenever what is shown at a place has changed, from now until the browser goes."""
        stream = self._changes(self._place(request), request)
        headers = {**_NOT_KEPT, "X-Accel-Buffering": "no"}
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)

    async def fine(self, request: Request) -> Response:
        """The curves of a run between two steps."""
        self._looked()
        asked = request.query_params
        ends = _steps(asked.get("from", ""), asked.get("to", ""))
        if ends is None:
            return line(400, "`from` and `to` must be two steps, the first before the second.")
        spec = await run_in_threadpool(self.views.fine, asked.get("run", ""), ends)
        if spec is None:
            return line(404, "There is no such run.")
        return Response(
            script_json(payload(spec)), media_type="application/json", headers=_NOT_KEPT
        )

    async def metrics(self, request: Request) -> Response:
        """The numbers of runs for Prometheus. To be scraped is not to be looked at."""
        text = await run_in_threadpool(
            metrics_of, self.views.folder, request.query_params.get("run")
        )
        if text is None:
            return line(404, "There is no such run.")
        return Response(text, headers={"Content-Type": CONTENT_TYPE, **_NOT_KEPT})

    async def look(self, request: Request) -> Response:
        """A stylesheet or script."""
        name = request.path_params["name"]
        if name not in self._files:
            return line(404, "There is no such file.")
        kind = "text/css" if name.endswith(".css") else "text/javascript"
        headers = {"Cache-Control": "max-age=31536000, immutable", "Vary": "Accept-Encoding"}
        packed = self._packed.get(name)
        if packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
            return Response(
                packed, media_type=kind, headers={**headers, "Content-Encoding": "gzip"}
            )
        return Response(self._files[name], media_type=kind, headers=headers)

    def _place(self, request: Request) -> Place:
        """The place that `at` names."""
        try:
            parts = urlsplit(request.query_params.get("at", "/"))
        except ValueError:  # what is no address
            return Place("nowhere")
        return read_place(without_base(parts.path, self._base), parts.query)

    async def _changes(self, place: Place, request: Request) -> AsyncIterator[bytes]:
        yield b"retry: 1000\n\n"
        last = ""
        while not self.ending.is_set():
            self._looked()
            with suppress(Exception):  # who asks for the view is told
                now = await run_in_threadpool(lambda: digest_of(place, self.views.show(place)))
                yield b": \n\n" if now == last else f"data: {now}\n\n".encode()
                last = now
            wait = time.monotonic() + EVERY
            while time.monotonic() < wait and not self.ending.is_set():
                await asyncio.sleep(_BREATH)
            if await request.is_disconnected():
                return

    def _prepare(self, place: Place) -> None:
        """Make what is asked for first, and then read the rest, if it stays as it is."""
        with suppress(Exception):  # who asks is told
            answer_of(self.views, place)
        self._read_ahead(place)

    def _read_ahead(self, place: Place) -> None:
        """Read what is going to be asked for next."""
        if not self.ending.wait(_REST):
            with suppress(Exception):  # who asks is told
                self.views.read_rest(place)


_NOT_KEPT: Final = {"Cache-Control": "no-store"}


def make_app(
    folder: Folder,
    *,
    bound: str = "127.0.0.1",
    token: str = "",
    looked: Callable[[], None] = lambda: None,
    warm: bool = False,
    hosts: Collection[str] = (),
    base: str = "",
) -> Guard:
    """The application that serves a folder.

    Arguments:
        folder: the runs.
        bound: the address that the server is bound to.
        token: what a browser or script must show; "" for none.
        looked: called whenever somebody looks.
        warm: make what is asked for first on a thread, at once.
        hosts: further names that browsers may know the server by.
        base: the path that it is under.
    """
    page = Page(folder, looked, base)
    if warm:
        threading.Thread(target=page.warm, name="nethook-warm", daemon=True).start()
    routes = [
        Route("/view", page.view),
        Route("/events", page.events),
        Route("/fine", page.fine),
        Route("/looks/{name:path}", page.look),
        Route("/metrics", page.metrics),
        Route("/{path:path}", page.shell),
    ]
    return Guard(
        Router(routes), bound=bound, token=token, policy=_POLICY, ending=page.ending, hosts=hosts,
        base=base,
    )  # fmt: skip


def line(status: int, text: str) -> Response:
    """An answer of one line."""
    return PlainTextResponse(f"{text}\n", status)


def _have(text: str) -> object:
    """What a browser says it has; None where that makes no sense."""
    if len(text) > _LONGEST:
        return None
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    return None


def _steps(first: str, last: str) -> tuple[float, float] | None:
    try:
        ends = float(first), float(last)
    except ValueError:
        return None
    return ends if -1e18 < ends[0] < ends[1] < 1e18 else None


def _files() -> dict[str, bytes]:
    """The stylesheets and scripts of the page; its own scripts are one file."""
    styles = {name: asset(name).encode() for name in _STYLES}
    script = "\n".join(asset(name) for name in _SCRIPTS)
    return {**styles, "page.js": script.encode(), "plotly.js": _plotly_js()}


@lru_cache(maxsize=1)
def _plotly_js() -> bytes:
    """plotly.js as plotly brings it, read once for all servers of a process."""
    from plotly.offline import get_plotlyjs

    script: str = get_plotlyjs()
    return script.encode()
