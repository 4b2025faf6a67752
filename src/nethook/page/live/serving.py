"""Serving the page: on this machine, until Ctrl-C, or until a run is over and nobody looks."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import tempfile
import threading
import time
import webbrowser
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nethook.errors import MissingLibraryError, NoSuchRunError, OptionError
from nethook.page.live.access import is_local
from nethook.page.live.token_page import forwarding_page
from nethook.page.live.tokens import link_with, new_token, token_of_file
from nethook.runs.format.owner import is_alive, process

if TYPE_CHECKING:
    from nethook.page.live.server import Server

PORT: Final = 8420
"""The first port that is tried."""
_TRIED: Final = 30
_PATIENCE: Final = 60.0  # seconds without a look after which the page of an ended run closes
_NICE: Final = 5  # beside a training the page comes second


@dataclass
class Served:
    """A page that is being served.

    Arguments:
        address: where, without the token.
        token: what must be shown; "" for none.
        server: what serves it.
        seen: when somebody looked: the last is the latest.
        token_file: where the token is kept, if it is.
    """

    address: str
    token: str
    server: Server
    seen: deque[float]
    token_file: Path | None = None

    @property
    def looked(self) -> float:
        """When somebody last looked."""
        return self.seen[-1]

    @property
    def url(self) -> str:
        """The link that opens the page."""
        return link_with(self.address, self.token)

    @property
    def said(self) -> str:
        """What is printed: the link; with a token file, the address and the file instead."""
        if self.token_file is None:
            return self.url
        return f"{self.address} (its token is in {self.token_file})"

    def run(self) -> None:
        """Serve until `stop` is called."""
        self.server.serve_forever()

    def stop(self) -> None:
        """End serving."""
        self.server.shutdown()


def serve(
    place: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    with_token: bool = True,
    token_file: str | Path | None = None,
    show: bool = False,
    wait: bool = False,
    beside: int | None = None,
    allow_hosts: Sequence[str] = (),
    base: str = "",
    say: Callable[[str], object] = print,
) -> None:
    """Serve the page of a folder of runs, or of one run, until it is interrupted.

    Arguments:
        place: the folder, or the run file.
        host: the address to bind to.
        port: None takes the first that is free, from 8420 on.
        with_token: whether a browser must come with a token, which is part of the link that is
            said. Without it everybody who reaches the address can read the runs.
        token_file: a file with the token, for scripts; it is created if it is missing. The token
            itself is not said then.
        show: open a browser.
        wait: the run file may come later.
        beside: the number of a process; when it has ended and nobody looks any more, so does this.
        allow_hosts: names by which a proxy in front of it is known: browsers may come by these.
        base: the path that such a proxy has it under, such as `/proxy/8420/`.
        say: called with the link, once.

    Raises:
        NoSuchRunError: there is no such folder or file.
        OptionError: the port is taken, the address is not this machine's, or the token file is
            none.
        MissingLibraryError: what serves the page is not installed.
    """
    served = start(
        place, host=host, port=port, with_token=with_token, token_file=token_file, wait=wait,
        allow_hosts=allow_hosts, base=base,
    )  # fmt: skip
    say(served.said)
    if not (with_token or is_local(host)):
        say("(without a token: anyone who can reach this address can read the runs)")
    with contextlib.ExitStack() as stack:
        if show:
            opened = stack.enter_context(_to_open(served))
            threading.Thread(target=webbrowser.open, args=(opened,), daemon=True).start()
        if beside is not None:
            _stand_aside()
            ends = threading.Thread(target=_end_after, args=(served, process(beside)), daemon=True)
            ends.start()
        with contextlib.suppress(KeyboardInterrupt):
            served.run()


@contextlib.contextmanager
def _to_open(served: Served) -> Iterator[str]:
    """What a browser is started with.

    Every user of this machine can list the arguments of its processes. So the browser is not given
    the link itself, but a file that leads to it and that only its owner can read.
    """
    if not served.token:
        yield served.url
        return
    number, name = tempfile.mkstemp(prefix="nethook-", suffix=".html")
    path = Path(name)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(forwarding_page(served.url))
        yield path.as_uri()
    finally:
        path.unlink(missing_ok=True)


def _stand_aside() -> None:
    """Come second to the process that this one serves, and keep nothing of it open.

    Whoever reads what that process writes (`nethook run … 2>&1 | tee log`) waits until all that
    could write to it are gone.
    """
    if hasattr(os, "nice"):
        os.nice(_NICE)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)


def start(
    place: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    with_token: bool = True,
    token_file: str | Path | None = None,
    wait: bool = False,
    allow_hosts: Sequence[str] = (),
    base: str = "",
) -> Served:
    """Bind a server for the page; `run` of what is returned serves it."""
    path = Path(place).expanduser().absolute()
    if not wait and not path.exists():
        raise NoSuchRunError(
            f"there is no folder or run {str(path)!r}: name one, such as `nethook ui runs`."
        )
    try:
        from nethook.page.live.app import make_app
        from nethook.page.live.server import Server
    except ImportError as error:
        if error.name not in ("jinja2", "markupsafe", "plotly", "starlette", "uvicorn"):
            raise
        raise MissingLibraryError(
            f"the page is served by {error.name}, which is not installed: pip install 'nethook[ui]'"
        ) from None
    from nethook.page.folder import Folder
    from nethook.page.live.base_path import base_path

    under = base_path(base)
    hosts = [_host_name(name) for name in allow_hosts]
    folder = Folder(path, wait=wait)
    token, kept = "", None
    if token_file is not None:
        kept = Path(token_file).expanduser().absolute()
        token = token_of_file(kept)
    elif with_token:
        token = new_token()
    looked = deque([time.monotonic()], maxlen=1)
    app = make_app(
        folder, bound=host, token=token, looked=lambda: looked.append(time.monotonic()),
        hosts=hosts, base=under, warm=True,
    )  # fmt: skip
    server = _bound(lambda number: Server(app, host, number), host, port)
    name = f"[{host}]" if ":" in host else host
    if host in ("0.0.0.0", "::"):
        name = socket.gethostname()
    way = f"run/{folder.id_of(path)}" if folder.single else ""
    # A proxy is reached by its own name, and such proxies speak HTTPS.
    server_name = f"https://{hosts[0]}" if hosts else f"http://{name}:{server.port}"
    return Served(f"{server_name}{under}/{way}", token, server, looked, kept)


def _host_name(text: str) -> str:
    """The name of a host, as `--allow-host` gives it."""
    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?", text):
        raise OptionError(
            f"`--allow-host` must be the name of a host such as hub.example.org; got {text!r}. "
            "Leave out https://, the port and the path."
        )
    return text.lower()


def _bound(make: Callable[[int], Server], host: str, port: int | None) -> Server:
    """A server on the port that was asked for, or on the first one that is free."""
    failed: OSError | None = None
    for number in _ports(host, port):
        try:
            return make(number)
        except (OSError, OverflowError) as error:  # a port beyond 65535 is one
            failed = error if isinstance(error, OSError) else OSError(str(error))
    asked = "every port that was tried" if port is None else f"port {port}"
    raise OptionError(
        f"the page cannot be served at {host}, {asked}: {failed}. Name another with --port."
    )


def _ports(host: str, port: int | None) -> Iterator[int]:
    if port is not None:
        yield port
        return
    yield from (number for number in range(PORT, PORT + _TRIED) if _is_free(host, number))
    yield 0


def _is_free(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _end_after(served: Served, mark: dict[str, Any]) -> None:
    """Stop when a process has ended, and no browser has asked for a while."""
    while is_alive(mark, None) or time.monotonic() - served.looked < _PATIENCE:
        time.sleep(1.0)
    served.stop()
