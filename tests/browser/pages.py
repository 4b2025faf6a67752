"""Pages that are served for a test, and runs in every state."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nethook.page.live.serving import start
from tests.figures.shared import changed, hostile, training

WRITE = """
import sys, time
import numpy as np
from pathlib import Path
from nethook.runs import names
from nethook.runs.writing.writer import RunWriter
from tests.runs.made import row

writer = RunWriter(Path(sys.argv[1]), flush_every=0.1)
writer.add_site("fc", "Linear", {"first_call": 1, "order": 1, "leaf": True})
outputs = writer.add_series("fc", names.OUTPUTS)
loss = writer.add_series(names.loss_address("train.py:1"), names.LOSS)
window = writer.window()
step = 0
print("ready", flush=True)
while step < int(sys.argv[2]):
    window.rows[outputs] = row(np.random.default_rng(step).normal(size=64))
    window.rows[loss] = row(np.array([2.0 / (1 + step / 20)]))
    window.seen[:] = 1
    window.add_step(step)
    window = writer.submit(window)
    step += 1
    time.sleep(0.02)
writer.close()
"""
"""A program that writes a run, a step every 20 ms."""


_TOKENS: dict[str, str] = {}
"""Of pages that are served, by address."""


def link(target: str) -> str:
    """The link that opens a view of a page, as it would be printed."""
    token = _TOKENS.get("/".join(target.split("/")[:3]))
    return target if token is None else f"{target}{'&' if '?' in target else '?'}token={token}"


@contextmanager
def served(place: Path, **options) -> Iterator[str]:
    """The address of a page, without a slash at its end."""
    made = start(place, port=0, **options)
    thread = threading.Thread(target=made.run)
    thread.start()
    try:
        address = "/".join(made.address.split("/")[:3])
        _TOKENS[address] = made.token
        yield address
    finally:
        made.stop()
        thread.join(10)


def folder_of_runs(to: Path) -> Path:
    """A folder with a run in every state, each with its name."""
    to.mkdir(parents=True, exist_ok=True)
    shutil.copy(training(), to / "training.db")
    shutil.copy(changed(), to / "changed.db")
    shutil.copy(hostile(), to / "hostile.db")
    (to / "broken.db").write_bytes(b"this is no run" * 500)
    return to


@contextmanager
def writing(path: Path, steps: int = 100_000) -> Iterator[subprocess.Popen]:
    """A process that writes a run; it is killed at the end."""
    command = [sys.executable, "-c", WRITE, str(path), str(steps)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == "ready"
            deadline = time.monotonic() + 20
            while not path.exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            yield process
        finally:
            process.send_signal(signal.SIGKILL)
