"""Serving: where, under which address, and when it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from nethook.errors import NoSuchRunError, OptionError
from nethook.page.live import serving
from nethook.page.live.serving import Served, serve, start
from tests.figures.shared import training


def read(link: str) -> str:
    """What a script gets at the address of a link, with the link's token."""
    address, _, token = link.partition("?token=")
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read().decode()


@contextmanager
def served(place: Path, **options: Any) -> Iterator[Served]:
    made = start(place, port=0, **options)
    thread = threading.Thread(target=made.run)
    thread.start()
    try:
        yield made
    finally:
        made.stop()
        thread.join(10)


def browser() -> urllib.request.OpenerDirector:
    """Something that keeps cookies and follows redirects."""
    return urllib.request.build_opener(urllib.request.HTTPCookieProcessor())


def test_it_is_served_until_it_is_stopped(tmp_path: Path) -> None:
    served = start(tmp_path, port=0)
    thread = threading.Thread(target=served.run)
    thread.start()
    try:
        assert served.url.startswith("http://127.0.0.1:")
        assert "<title>nethook</title>" in read(served.url)
        assert served.server.socket.getsockname()[0] == "127.0.0.1"
    finally:
        served.stop()
        thread.join(10)
    with pytest.raises(OSError, match=r"refused|reset"):
        read(served.url)


def test_the_address_of_one_run_is_that_of_its_page() -> None:
    served = start(training(), port=0)
    served.server.server_close()
    assert served.url.count("/run/") == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_every_address_has_a_token(tmp_path: Path, host: str) -> None:
    served = start(tmp_path, host=host, port=0)
    served.server.server_close()
    assert len(served.url.partition("?token=")[2]) >= 43


def test_pages_at_several_ports_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Browsers send cookies to every port of a host."""
    with served(tmp_path) as first, served(tmp_path) as second:
        mine = browser()
        for each in (first, second):
            with mine.open(each.url, timeout=20) as answer:
                assert answer.url == each.address  # the token has left it
                assert "<title>nethook</title>" in answer.read().decode()
        for each in (first, second):
            assert mine.open(each.address, timeout=20).status == 200
            with pytest.raises(urllib.error.HTTPError, match="401"):
                browser().open(each.address, timeout=20)


def test_a_page_without_a_token(tmp_path: Path) -> None:
    with served(tmp_path, with_token=False) as page:
        assert page.url == page.address
        assert browser().open(page.url, timeout=20).status == 200


def test_a_token_in_a_file_is_not_said(tmp_path: Path) -> None:
    with served(tmp_path, token_file=tmp_path / "token") as page:
        token = (tmp_path / "token").read_text().strip()
        assert page.url == f"{page.address}?token={token}"
        assert token not in page.said
        assert page.said == f"{page.address} (its token is in {tmp_path / 'token'})"
        assert "<title>nethook</title>" in read(page.url)
    again = start(tmp_path, port=0, token_file=tmp_path / "token")
    again.server.server_close()
    assert again.token == token


def test_a_page_for_everybody_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Served, "run", lambda self: self.server.server_close())
    said: list[str] = []
    serve(tmp_path, host="0.0.0.0", port=0, with_token=False, say=said.append)
    assert "token" not in said[0]
    assert "anyone who can reach this address can read the runs" in said[1]
    said.clear()
    serve(tmp_path, port=0, with_token=False, say=said.append)
    assert len(said) == 1


def test_a_browser_is_not_given_the_token_as_an_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody on the machine can list the arguments of its processes."""
    opened: Queue[tuple[str, str, int]] = Queue()

    def open_it(url: str) -> None:
        path = Path(urllib.request.url2pathname(url.removeprefix("file://")))
        opened.put((url, path.read_text(), stat.S_IMODE(path.stat().st_mode)))

    said: list[str] = []
    shown: list[tuple[str, str, int]] = []

    def run(self: Served) -> None:
        self.server.server_close()
        shown.append(opened.get(timeout=20))

    monkeypatch.setattr("webbrowser.open", open_it)
    monkeypatch.setattr(Served, "run", run)
    serve(tmp_path, port=0, show=True, say=said.append)
    ((url, text, mode),) = shown
    assert said[0].partition("?token=")[2] not in url
    assert f'content="0; url={said[0]}"' in text
    assert mode == 0o600
    assert not Path(url.removeprefix("file://")).exists()  # it went with the server


@pytest.mark.parametrize(
    "request_",
    [
        b"nonsense\r\n\r\n",
        b"GET /a b?token=Seven HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET //[ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /%zz?%zz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: [\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: \xff=;;=\r\nAuthorization: \xff\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused_without_a_word(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], request_: bytes
) -> None:
    with served(tmp_path) as page:
        with socket.create_connection(("127.0.0.1", page.server.port), timeout=20) as sock:
            sock.sendall(request_)
            sock.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: sock.recv(65536), b""))
        head, _, body = answer.rpartition(b"\r\n\r\n")
        assert b" 40" in head[:12] or body.startswith(b"400: ")
        assert body.count(b"\n") == 1
        assert b"Seven" not in answer  # the token of somebody who mistyped the link
        assert "<title>nethook</title>" in read(page.url)  # it is still there
    assert capfd.readouterr() == ("", "")


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OptionError, match=rf"port {port}: .*Name another with --port"):
            start(tmp_path, port=port)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NoSuchRunError, match="there is no folder or run"):
        start(tmp_path / "none")
    start(tmp_path / "later.db", port=0, wait=True).server.server_close()


def test_it_ends_when_its_process_has_and_nobody_looks(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(serving, "_PATIENCE", 0.5)
    monkeypatch.setattr(serving, "_stand_aside", lambda: None)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        said: list[str] = []
        options = {"port": 0, "beside": process.pid, "say": said.append}
        thread = threading.Thread(target=serve, args=(tmp_path,), kwargs=options)
        thread.start()
        thread.join(2.5)
        assert thread.is_alive()  # nobody looks, but the process is there
        assert "nethook" in read(said[0])
        process.kill()
    thread.join(20)
    assert not thread.is_alive()


def test_the_process_of_the_page_is_no_child_of_the_script(tmp_path: Path) -> None:
    """A script that waits for all of its children must not wait for the page."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os\ntry:\n    os.wait()\nexcept ChildProcessError:\n    print('no children')\n"
    )
    source = str(Path(__file__).parents[3] / "src")
    command = [sys.executable, "-m", "nethook", "run", "--ui", "--to", "run.db", "script.py"]
    with subprocess.Popen(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": source}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        out, err = process.communicate(timeout=60)  # the page does not keep them open
        page = page_beside(process.pid)
    os.kill(page, signal.SIGTERM)
    assert (process.returncode, out.strip()) == (0, "no children")
    assert re.search(r"nethook ui: http://127\.0\.0\.1:\d+/run/\w+\?token=[\w-]{43}\n", err)


def page_beside(pid: int) -> int:
    """The process of the page that was started beside another."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for place in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = place.read_bytes().split(b"\0")
            except OSError:
                continue
            beside = b"\0".join(words).partition(b"--beside\0")[2].split(b"\0")[0]
            if beside == str(pid).encode() and b"-c" not in words:  # that would start it
                return int(place.parent.name)
        time.sleep(0.1)
    raise AssertionError("there is no page")
