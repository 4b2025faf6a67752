"""Serving: where, under which address, and when it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from nethook.errors import NoSuchRunError, OptionError
from nethook.page import serving
from nethook.page.serving import serve, start
from tests.figures.shared import training


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=20) as answer:
        return answer.read().decode()


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


def test_another_address_has_a_token(tmp_path: Path) -> None:
    served = start(tmp_path, host="0.0.0.0", port=0)
    served.server.server_close()
    assert len(served.url.partition("?token=")[2]) >= 32


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
    source = str(Path(__file__).parents[2] / "src")
    command = [sys.executable, "-m", "nethook", "run", "--ui", "--to", "run.db", "script.py"]
    with subprocess.Popen(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": source}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        out, err = process.communicate(timeout=60)  # the page does not keep them open
        page = page_beside(process.pid)
    os.kill(page, signal.SIGTERM)
    assert (process.returncode, out.strip()) == (0, "no children")
    assert "nethook ui: http://127.0.0.1:" in err


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
