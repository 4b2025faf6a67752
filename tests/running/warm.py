"""A Python that has imported torch already, and forks a child for every program it is asked to run.

Importing torch takes longer than most of the training scripts. A script that does not care how its
process began is run in such a child, bare and under `nethook run` alike; one that does (it sets
variables first, fails) has a process of its own, and under `nethook run` some others, too (they
start processes, end in a way of their own).

A request is a line of JSON on the standard input: folder, arguments after `python`, files for the
two outputs. The answer is the child's exit status.
"""

from __future__ import annotations

import gc
import json
import multiprocessing.process
import os
import runpy
import sys


def serve() -> dict | None:
    """Answers requests; in a child, returns the one that is its own."""
    import torch._dynamo  # noqa: F401 - the first optimizer imports it, which takes a second

    gc.freeze()  # a child need not look through all that again when it ends: half a second

    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            return job
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return None


def become(job: dict) -> None:
    """Makes this process one that was started in a folder, with outputs in files."""
    os.chdir(job["folder"])
    # A process that is spawned looks for the script from here.
    multiprocessing.process.ORIGINAL_DIR = job["folder"]
    for number, name in ((0, os.devnull), (1, job["out"]), (2, job["err"])):
        file = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
        os.dup2(file, number)
        os.close(file)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115


def run(words: list[str]) -> None:
    """`python` with these words."""
    if words[:2] == ["-m", "nethook"]:
        from nethook.cli.entry import main

        sys.argv[:] = ["nethook", *words[2:]]
        main()
        return
    if words[0] == "-m":
        sys.argv[:] = ["-m", *words[2:]]
        sys.path[0] = os.getcwd()  # noqa: PTH109
        runpy._run_module_as_main(words[1])  # as `python -m` does
        return
    sys.argv[:] = words
    sys.path[0] = os.path.dirname(os.path.realpath(words[0]))  # noqa: PTH120
    runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__" and (mine := serve()) is not None:
    become(mine)
    run(mine["words"])
