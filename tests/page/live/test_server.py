"""The server: bound before it runs, and ended from another thread."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from nethook.page.folder import Folder
from nethook.page.live.app import make_app
from nethook.page.live.server import Server


def test_it_answers_who_came_before_it_ran_and_ends_with_streams_open(tmp_path: Path) -> None:
    server = Server(make_app(Folder(tmp_path)), "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.port}"
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as early:
        early.sendall(b"GET /events?at=/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        assert early.recv(65536).startswith(b"HTTP/1.1 200")
        with urllib.request.urlopen(address, timeout=20) as answer:
            assert b"<title>nethook</title>" in answer.read()
        server.shutdown()
        thread.join(10)
    assert not thread.is_alive()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=20)


def test_a_port_that_is_taken_is_an_error(tmp_path: Path) -> None:
    app = make_app(Folder(tmp_path))
    first = Server(app, "127.0.0.1", 0)
    with pytest.raises(OSError, match="in use"):
        Server(app, "127.0.0.1", first.port)
    first.server_close()


def test_ctrl_c_ends_it_at_once_also_while_somebody_looks(tmp_path: Path) -> None:
    code = (
        "from nethook.page.live.serving import serve\n"
        f"serve({str(tmp_path)!r}, port=0, with_token=False, say=lambda t: print(t, flush=True))"
    )
    source = str(Path(__file__).parents[3] / "src")
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": source},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        port = int(process.stdout.readline().rstrip("/\n").rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=20) as looking:
            looking.sendall(b"GET /events?at=/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert looking.recv(65536).startswith(b"HTTP/1.1 200")
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=20)
    assert (process.returncode, said) == (0, "")
