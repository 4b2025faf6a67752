"""A process that has imported torch, and runs each program of the zoo in a fork of itself.

    python zoo/forked.py [MODULE…]    one job a line of stdin, as JSON; the exit code of each on stdout

The modules are imported at the start, besides torch: a trainer takes longer still.

A program takes a second or two, and its imports (torch, what the first step of an optimizer
imports, the data) take four: a thousand runs need them once. What runs in the fork is `nethook run`
as the command line runs it, or the program as `python` runs it, where the job is `plain`.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import signal
import sys
from typing import Any


def serve() -> dict[str, Any] | None:
    """Forks once a job. In the child: the job; in the parent at last None."""
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            signal.alarm(job["timeout"])  # its default action ends the process
            log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.chdir(job["folder"])
            return dict(job)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return None


if __name__ == "__main__":
    import sklearn.datasets  # noqa: F401
    import torch._dynamo
    import torch.utils.data  # noqa: F401

    import nethook.running.detecting.watches
    import nethook.watching.watch  # noqa: F401
    from nethook.cli.commands.run import main

    for name in sys.argv[1:]:
        importlib.import_module(name)
    gc.freeze()  # a fork need not look through all that again when it ends: half a second
    job = serve()
    if job is not None and job.get("plain"):
        sys.argv = job["arguments"]
        sys.path[0] = os.path.dirname(job["arguments"][0])
        runpy.run_path(job["arguments"][0], run_name="__main__")
    elif job is not None:
        sys.argv = ["nethook", "run", *job["arguments"]]
        main(job["arguments"])
