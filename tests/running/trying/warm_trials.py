"""Trials in forks of a Python that has imported torch already: importing takes longer than most.

A request is a line of JSON on the standard input: the plan of a trial, its folder, its environment,
and the path of the pipe that it reports to. The answer is two lines: the number of the process, and
an empty one when it has ended. What depends on how a process begins is tested in `test_trial.py`
and in `sandbox/`, with processes that start from nothing.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from time import monotonic

from nethook.running.trying.process import TrialEnd, _wait
from nethook.running.trying.trial import TrialPlan
from tests.processes import next_line
from tests.running.both import environment

_SECONDS = 120.0


def run_warm_trial(plan: TrialPlan, folder: str, variables: Mapping[str, str]) -> TrialEnd:
    """Runs a trial to its end, as `run_trial` does, in a fork."""
    server = _server()
    assert server.stdin is not None
    reading, writing = os.pipe()
    try:
        job = {
            "plan": plan.to_json(),
            "folder": folder,
            "environment": dict(variables),
            "pipe": f"/proc/{os.getpid()}/fd/{writing}",
        }
        server.stdin.write(json.dumps(job) + "\n")
        server.stdin.flush()
        process = int(next_line(server))  # it has the pipe
    finally:
        os.close(writing)
    try:
        return _wait(reading, monotonic() + _SECONDS, lambda _: None)
    finally:
        os.close(reading)
        with suppress(OSError):
            os.killpg(process, signal.SIGKILL)
        next_line(server)


@cache
def _server() -> subprocess.Popen[str]:
    """The process that forks, for all tests of this process."""
    server = subprocess.Popen(
        [sys.executable, "-B", "-m", "tests.running.trying.warm_trials"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
        text=True,
        start_new_session=True,
    )

    def stop() -> None:
        assert server.stdin is not None
        server.stdin.close()
        server.wait()

    atexit.register(stop)
    return server


def _serve() -> None:
    """Forks a trial per request."""
    import torch._dynamo  # noqa: F401 - the first optimizer imports it, which takes a second

    from nethook.running.trying.trial import main

    gc.freeze()
    for line in sys.stdin:
        job = json.loads(line)
        pipe = os.open(job["pipe"], os.O_WRONLY)
        child = os.fork()
        if child == 0:
            os.setsid()
            null = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(null, number)
            os.environ.clear()
            os.environ.update(job["environment"])
            os.chdir(job["folder"])
            main(TrialPlan.from_json(job["plan"])._replace(pipe=pipe).to_json())
        os.close(pipe)
        print(child, flush=True)
        os.waitpid(child, 0)
        print(flush=True)


if __name__ == "__main__":
    _serve()
