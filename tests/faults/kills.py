"""kill −9 at random moments, and going on in the same run each time.

A child trains under `nethook.watch(resume=True)` and keeps a log of its own: one line a step, in
the file before the weights change. Whatever the run has of a step must be what the last line about
that step says; no step is in it twice, and none is missing that it does not name as missing.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

TITLE = "kill -9 and resume"
TRIES = 100
SHORT = 2
KILLS = 3  # in one attempt
STEPS = 60  # of a session that nobody kills


def attempt(seed: int, folder: Path) -> None:
    """Some kills and a session that ends as it should; odd seeds go on from a checkpoint."""
    killed_in_a_row(seed, folder, KILLS, checkpoints=bool(seed % 2))


def killed_in_a_row(seed: int, folder: Path, kills: int, *, checkpoints: bool) -> Path:
    """One run that was killed so many times and gone on with; its path, when all is well."""
    chance = random.Random(seed)
    path = folder / "run.db"
    server = _server()
    for number in range(kills + 1):
        job = {"folder": str(folder), "seed": number, "checkpoints": checkpoints}
        pid = _ask(server, job)
        if number < kills:
            # Before the first step, which is while the file is made or opened, or after some.
            wanted = chance.choice((0, chance.randrange(1, STEPS)))
            if _read_steps(server, wanted):
                time.sleep(chance.uniform(0, 0.01 if wanted else 0.12))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        status = _read_end(server)
        assert status in ((0, -signal.SIGKILL) if number < kills else (0,)), status
        check_sound(path)
    check_against_log(path, folder / "log", checkpoints=checkpoints)
    return path


def check_sound(path: Path) -> None:
    """Whatever there is can be read as a database."""
    if path.exists() and path.stat().st_size:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def check_against_log(path: Path, log: Path, *, checkpoints: bool) -> None:
    """The run has every step once, with the loss that the last line of the log about it says."""
    import nethook

    said = {}
    for line in log.read_text().splitlines():
        step, value = line.split()
        said[int(step)] = float.fromhex(value)
    with nethook.open_run(path) as run:
        assert run.ranks[0].state == "finished"
        series = run.series("@loop", "forwards")
        steps = [
            step
            for first, last in zip(series.first_step, series.last_step, strict=True)
            for step in range(first, last + 1)
        ]
        assert steps == sorted(set(steps)), "a step twice, or out of order"
        missing = set(range(steps[-1] + 1)) - set(steps)
        if not checkpoints:
            assert not missing
        # A checkpoint may be newer than what was written of the run, or lie inside of a window,
        # which cannot be split: that is named.
        named: set[int] = set()
        for event in run.events:
            if event.kind == "resumed":
                named |= set(range(event.data["kept_step"] + 1, event.data["first_step"]))
        assert missing <= named, missing - named
        (loss,) = (each for name, each in run.scalars.items() if name.startswith("loss:"))
        mine = run.scalars["mine"]  # logged by the script, before the weights change
        for scalar in (loss, mine):
            there = scalar.step.tolist()
            assert there == sorted(set(there)), "a step twice, or out of order"
            # Points are written a little before the window of their step.
            assert set(steps) <= set(there) <= set(steps) | named
        assert loss.value.tolist() == [said[step] for step in loss.step.tolist()]
        assert mine.value.tolist() == mine.step.tolist()
        assert np.all(series["count"] == series.steps)
        assert np.all(run.overview(points=4).last_step <= steps[-1])
        info = run.info
    assert info["sessions"][-1]["last_step"] == steps[-1]
    assert info["totals"]["steps"] == len(steps)


# The child


def train(folder: Path, seed: int, checkpoints: bool) -> None:
    """Train for some steps, in the run that is there."""
    import torch

    import nethook
    from nethook.runs.writing.writer import RunWriter
    from nethook.watching import attach

    # A transaction every few steps: a kill finds the writer at work.
    attach.RunWriter = functools.partial(RunWriter, flush_every=0.005)  # type: ignore[misc]
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    kept = folder / "checkpoint"
    step = int(kept.read_text()) if checkpoints and kept.exists() else None
    log = os.open(folder / "log", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    with nethook.watch(
        model, optimizer, to=folder / "run.db", resume=True, step=step, budget=None
    ) as watch:
        watch.be_silent()
        for _ in range(STEPS):
            x = torch.randn(8, 4)
            loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
            optimizer.zero_grad()
            loss.backward()
            os.write(log, f"{watch.step} {loss.item().hex()}\n".encode())
            watch.log(mine=watch.step)
            optimizer.step()
            if watch.step % 7 == 0:
                (folder / "part").write_text(str(watch.step))
                (folder / "part").replace(kept)
            os.write(1, b"step\n")


# A process that has imported torch, and forks a child for every session


def _serve() -> None:
    import torch._dynamo  # noqa: F401 - the first optimizer imports it, which takes a second

    import nethook.watching.watch  # noqa: F401

    gc.freeze()
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                train(Path(job["folder"]), job["seed"], job["checkpoints"])
                code = 0
            finally:
                sys.stderr.flush()
                os._exit(code)
        os.write(1, f"pid {child}\n".encode())
        _, status = os.waitpid(child, 0)
        os.write(1, f"ended {os.waitstatus_to_exitcode(status)}\n".encode())


@functools.cache
def _server() -> subprocess.Popen[str]:
    root = Path(__file__).parents[2]
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.kills"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root,
    )  # fmt: skip
    atexit.register(_end, server)
    return server


def _end(server: subprocess.Popen[str]) -> None:
    server.kill()
    server.communicate()  # closes its pipes, and waits for it


def _line(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    line = server.stdout.readline()
    assert line, "the process that forks has gone"
    return line


_ENDED: list[int] = []


def _ask(server: subprocess.Popen[str], job: dict[str, object]) -> int:
    assert server.stdin is not None
    server.stdin.write(json.dumps(job) + "\n")
    server.stdin.flush()
    _ENDED.clear()
    while not (line := _line(server)).startswith("pid"):
        assert line == "step\n", line
    return int(line.split()[1])


def _read_steps(server: subprocess.Popen[str], wanted: int) -> bool:
    """Whether the child lives after so many steps, as far as is known."""
    for _ in range(wanted):
        line = _line(server)
        if line.startswith("ended"):
            _ENDED.append(int(line.split()[1]))
            return False
    return True


def _read_end(server: subprocess.Popen[str]) -> int:
    while not _ENDED:
        line = _line(server)
        if line.startswith("ended"):
            _ENDED.append(int(line.split()[1]))
    return _ENDED[0]


if __name__ == "__main__":
    _serve()
