"""The process that serves the page beside a script."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from nethook.running.live import page_process
from nethook.running.live.page_process import missing, start_page


def test_what_is_not_installed_is_named_with_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    for absent in ("plotly", "starlette", "uvicorn", "jinja2"):
        monkeypatch.setattr(
            page_process, "find_spec", lambda name, absent=absent: None if name == absent else name
        )
        assert missing() == (
            f"the page needs {absent}, which is not installed: pip install 'nethook[ui]'"
        )


def test_where_all_are_installed_nothing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_process, "find_spec", lambda name: name)
    assert missing() == ""


@pytest.mark.parametrize("show", [False, True])
def test_the_page_is_told_of_the_run_and_of_the_script(
    monkeypatch: pytest.MonkeyPatch, show: bool
) -> None:
    started: list[tuple[list[str], dict[str, Any]]] = []
    monkeypatch.setattr(
        subprocess, "run", lambda command, **options: started.append((command, options))
    )
    start_page("/runs/a b.db", show=show)
    ((command, options),) = started
    # Twice python: the first starts the second and ends.
    assert command.count(sys.executable) == 2
    page = command[command.index("-m") :]
    wanted = ["-m", "nethook", "ui", "/runs/a b.db", "--wait", "--beside", str(os.getpid())]
    assert page == wanted + ["--open"] * show
    assert options["stdin"] is subprocess.DEVNULL
    assert options["check"] is False


def test_the_launcher_ends_before_the_server_does() -> None:
    """And its standard output is free then: whoever reads the script's output waits for nobody."""
    server = "import sys, time; time.sleep(0.3); sys.stderr.write('served')"
    launcher = [sys.executable, "-c", page_process._LAUNCH, sys.executable, "-c", server]
    with subprocess.Popen(launcher, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.wait(60) == 0
        assert process.stdout.read() == b""
        assert process.stderr.read() == b"served"
