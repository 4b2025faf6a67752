"""Running a function in a process of its own, with little memory and little time."""

from __future__ import annotations

import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

MEMORY = 1 << 30
"""Bytes that it may take beyond what the process has."""
SECONDS = 60
"""After which it counts as hanging."""


def run_limited(function: Callable[[], object]) -> None:
    """Runs a function in a forked process.

    Raises:
        AssertionError: it raised, crashed the interpreter, took too much memory, or hung.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        code = 1
        try:
            _limit()
            function()
            code = 0
        except BaseException:
            os.write(write, traceback.format_exc()[-60_000:].encode("utf-8", "backslashreplace"))
        finally:
            os._exit(code)
    os.close(write)
    said = b""
    while part := os.read(read, 1 << 16):
        said += part
    os.close(read)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGALRM:
        raise AssertionError(f"nothing came back within {SECONDS} seconds")
    assert code == 0, f"ended with {code}\n{said.decode(errors='replace')}"


def _limit() -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(SECONDS)
    if sys.platform.startswith("linux"):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
