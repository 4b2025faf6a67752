"""uvicorn on a socket that is bound before it runs, without a word in any log."""

from __future__ import annotations

import contextlib
import socket
from types import FrameType
from typing import Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from nethook.page.live.guard import Guard

_GRACE: Final = 2  # seconds that requests have to end


class Server:
    """A server that is bound, and serves when it is told to.

    Arguments:
        app: the application.
        host: the address to bind to.
        port: 0 for any that is free.

    Raises:
        OSError: the address or the port cannot be had.
    """

    def __init__(self, app: Guard, host: str, port: int) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.socket.bind((host, port))
            self.socket.listen(128)  # who comes before it runs waits
        except BaseException:
            self.socket.close()
            raise
        self._app = app
        config = uvicorn.Config(
            app, http=Quiet, ws="none", lifespan="off", log_config=None, log_level="critical",
            access_log=False, server_header=False, date_header=False,
            timeout_graceful_shutdown=_GRACE,
        )  # fmt: skip
        self._server = _Uvicorn(config, app)

    @property
    def port(self) -> int:
        """The port that it is bound to."""
        return int(self.socket.getsockname()[1])

    def serve_forever(self) -> None:
        """Serve until `shutdown` is called, or Ctrl-C."""
        try:
            self._server.run(sockets=[self.socket])
        finally:
            self.server_close()

    def shutdown(self) -> None:
        """End serving."""
        self._app.ending.set()
        self._server.should_exit = True

    def server_close(self) -> None:
        """Give the port back."""
        with contextlib.suppress(OSError):
            self.socket.close()


class _Uvicorn(uvicorn.Server):
    """Ends streams of events, too, when a signal ends the server."""

    def __init__(self, config: uvicorn.Config, app: Guard) -> None:
        super().__init__(config)
        self._app = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._app.ending.set()
        super().handle_exit(sig, frame)


class Quiet(H11Protocol):
    """Answers malformed requests with one line, and repeats nothing that may have the token."""

    _is_half_closed = False

    def send_400_response(self, msg: str) -> None:
        """One line, whatever was wrong."""
        text = b"400: Bad Request.\n"
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", str(len(text)).encode()),
            (b"connection", b"close"),
        ]
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=text),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Whoever sends no more may still wait for the answer."""
        self._is_half_closed = True
        cycle: object = self.cycle  # None before the first request, whatever its type says
        return cycle is not None and not self.cycle.response_complete

    def on_response_complete(self) -> None:
        """Nobody sends anything more on a connection that is half closed."""
        super().on_response_complete()
        if self._is_half_closed:
            self.transport.close()
