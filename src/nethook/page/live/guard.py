"""The gate in front of the application, and what every answer says to browsers."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nethook.page.live.access import Gate
from nethook.page.live.base_path import scope_without_base
from nethook.page.live.tokens import Answer, Asked

LARGEST: Final = 1 << 20
"""Bytes of a request."""

_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "SAMEORIGIN",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_log = logging.getLogger("nethook.page")


class Guard:
    """The application behind the gate: refuses who may not ask, tells browsers what is allowed.

    Arguments:
        app: the application.
        bound: the address that it is bound to.
        token: what must be shown; "" for none.
        policy: the content security policy.
        ending: is set when the server ends, so that no stream holds it up.
        hosts: further names that browsers may know this server by.
        base: the path that it is under.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        bound: str,
        token: str,
        policy: str,
        ending: threading.Event,
        hosts: Collection[str] = (),
        base: str = "",
    ) -> None:
        self.ending = ending
        self._app = app
        self._base = base
        self._gate = Gate(bound, token, hosts, base)
        self._headers = {**_HEADERS, "Content-Security-Policy": policy}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            raise RuntimeError(f"nethook answers HTTP alone; got {scope['type']!r}.")

        scope = scope_without_base(scope, self._base)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        request = Request(scope, receive)
        answer = await self._answer(request)
        if answer is None:
            await self._asked(scope, request.receive, with_headers)
            return
        kind = {"Content-Type": "text/plain; charset=utf-8"}
        response = Response(answer.text, answer.status, {**kind, **answer.headers})
        await response(scope, receive, with_headers)

    async def _asked(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Ask the application; an error of ours is one line, and is logged."""
        started = False

        async def noting(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except Exception as error:
            _log.exception("the page failed")
            if started:
                raise
            text = f"nethook failed to answer: {type(error).__name__}.\n"
            await PlainTextResponse(text, 500)(scope, receive, send)

    async def _answer(self, request: Request) -> Answer | None:
        """What is answered in the place of the page, or None."""
        body = b""
        if request.method == "POST":
            async for part in request.stream():
                body += part
                if len(body) > LARGEST:
                    return Answer(413, "That is too much.\n")
        headers = {name.lower(): value for name, value in request.headers.items()}
        query = request.scope["query_string"].decode("latin-1")
        path = request.scope["path"]

        def read(most: int) -> bytes:
            return body if len(body) <= most else b""

        answer = self._gate.answer(Asked(request.method, path, query, headers, read))
        if answer is None and request.method == "POST":
            return Answer(404, "Nothing can be posted here.\n")
        return answer
