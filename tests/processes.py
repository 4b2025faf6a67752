"""Processes that a test starts, and that end with it.

`subprocess.run(timeout=...)` kills the process that it started and then waits for whoever else
holds the pipes: a rank whose peer is gone waits for half an hour. Here all of them are killed.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

SECONDS = 300.0
"""Longer than anything takes on a busy machine."""


def run_whole(
    command: Sequence[str], *, input: str | None = None, seconds: float = SECONDS, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Runs a command, and kills it with all that it started where it takes too long.

    Raises:
        subprocess.TimeoutExpired: it was killed; its output so far is in the error.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )
    try:
        out, err = process.communicate(input, timeout=seconds)
    except subprocess.TimeoutExpired as late:
        kill_all(process)
        late.output, late.stderr = process.communicate()
        raise
    except BaseException:
        kill_all(process)
        raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def kill_all(process: subprocess.Popen[str]) -> None:
    """Kills a process that began a session of its own, with all that is in that session's group."""
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)


def next_line(process: subprocess.Popen[str], seconds: float = SECONDS) -> str:
    """The next line of what a process prints, all of which is read in this way.

    Raises:
        subprocess.TimeoutExpired: there was none in time, and the process was killed.
    """
    assert process.stdout is not None
    pipe, line = process.stdout.fileno(), b""
    while not line.endswith(b"\n"):
        if not select.select([pipe], [], [], seconds)[0]:
            kill_all(process)
            raise subprocess.TimeoutExpired(process.args, seconds)
        byte = os.read(pipe, 1)  # no more: nobody waits for what lies in a buffer
        if not byte:
            break
        line += byte
    return line.decode()
