"""Ways that take turns, each in a process of its own.

Some tools change torch for the whole process (they wrap its functions, or register hooks for good),
so no two of them can be measured in one. The processes are plain programs, which is what every tool
is made for; they are asked and answer in lines of JSON.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import importlib.metadata
import json
import os
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch


class NotHereError(Exception):
    """A way that cannot be measured on this machine, with the reason."""


@dataclass(frozen=True)
class Work:
    """What one way does, once it is ready.

    Attributes:
        run: the work, once. It is what is timed, and what memory is measured of.
        check: what it got right and wrong, by question.
        inner: how many times it runs in a turn.
    """

    run: Callable[[], object]
    check: Callable[[], dict[str, str]]
    inner: int = 1


def version_of(package: str) -> str:
    """The version that is installed; "" of what is no package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def first_line(error: BaseException) -> str:
    """An error in one line."""
    text = next((line for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {text.strip()}"[:160]


# Whether malloc gives large tensors back to the system, and has each of their pages made anew,
# depends on what a process has freed before: a library that is imported makes training faster by a
# quarter. Here all keep what they have.
SAME_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 28),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 28),
}


def extra_memory(run: Callable[[], object]) -> float:
    """Megabytes that a run needs more at its peak than there were before it; on Linux."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what was freed is no memory of the next run
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    before = _status("VmRSS")
    result = run()
    peak = _status("VmHWM")
    del result
    return max(0.0, (peak - before) / 1024)


def _status(name: str) -> int:
    """Kilobytes that Linux counts for this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def measured(work: Work) -> dict[str, float]:
    """Seconds of the processor and of the clock, for one run."""
    begin, wall = time.process_time(), time.perf_counter()
    for _ in range(work.inner):
        work.run()
    return {
        "seconds": (time.process_time() - begin) / work.inner,
        "clock": (time.perf_counter() - wall) / work.inner,
    }


def serve(part: str, way: str) -> None:
    """The process of one way: does what it is asked for, and says what came of it."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a tool prints is no answer

    def say(answer: object) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    try:
        work: Work = importlib.import_module(f"peers.{part}").make(way)
        work.run()
    except NotHereError as error:
        say({"left_out": str(error)})
        return
    except Exception as error:
        traceback.print_exc()
        say({"left_out": first_line(error)})
        return
    say({})
    for line in sys.stdin:
        asked = line.strip()
        if asked == "time":
            say(measured(work))
        elif asked == "memory":
            say(extra_memory(work.run))
        else:
            say(work.check())


def take_turns(part: str, ways: Iterable[str], rounds: int) -> dict[str, dict[str, Any]]:
    """Time, memory and what was got wrong, of each way; or why it was left out.

    Seconds are the processor's, and by the clock beside it: the mean of the quickest third.
    """
    found: dict[str, dict[str, Any]] = {}
    with contextlib.ExitStack() as stack:
        processes: dict[str, subprocess.Popen[str]] = {}

        def ask(way: str, what: str) -> Any:
            process = processes[way]
            assert process.stdin is not None
            assert process.stdout is not None
            if what:
                process.stdin.write(what + "\n")
                process.stdin.flush()
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"the process of {way} has ended: see above")
            return json.loads(line)

        for way in ways:
            process = subprocess.Popen(
                [sys.executable, "-m", "peers", "--serve", part, way],
                env={**os.environ, **SAME_MEMORY},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            processes[way] = stack.enter_context(process)
            found[way] = ask(way, "")
            if found[way]:
                print(f"  {way}: left out: {found[way]['left_out']}", flush=True)
                del processes[way]
        took: dict[str, list[dict[str, float]]] = {way: [] for way in processes}
        for _ in range(rounds):
            for way in processes:
                took[way].append(ask(way, "time"))
        for way in processes:
            for unit in ("seconds", "clock"):
                quickest = sorted(each[unit] for each in took[way])[: max(1, rounds // 3)]
                found[way][unit] = sum(quickest) / len(quickest)
            found[way]["megabytes"] = ask(way, "memory")
            found[way]["checks"] = ask(way, "check")
    return found


def functions_of_torch() -> dict[str, object]:
    """What torch has as plain functions: some tools replace them."""
    kinds = type(torch.add), type(torch.compile)
    named = {name: getattr(torch, name) for name in dir(torch) if not name.startswith("_")}
    return {name: value for name, value in named.items() if isinstance(value, kinds)}
