"""Two ranks that talk by gloo, and all that is to be seen of them: one start for many cells.

`outcome(name)` starts the program below twice, once for each rank, the first time that it is called
in a test run, and gives what rank 0 and rank 1 have returned for one scenario. Each scenario is run
twice there: with nethook as it is and, as `name without`, with its guard switched off.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

STEPS = 3
WORLD = 2
SCENARIOS: dict[str, tuple[Callable[..., Any], Callable[[], Any]]] = {}


def scenario(guard: Callable[[], Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declares a function `(rank, path) -> plain data`, and what its twin does without."""

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        SCENARIOS[function.__name__] = (function, guard)
        return function

    return declare


def outcome(name: str) -> tuple[Any, Any]:
    """What the ranks have returned; an error of one of them is raised."""
    results = [_results(str(folder()))[rank].get(name) for rank in range(WORLD)]
    for each in results:
        if isinstance(each, dict) and "error" in each:
            raise AssertionError(each["error"])
    return results[0], results[1]


def run_path(name: str) -> Path:
    """The run file of a scenario."""
    return folder() / f"{name.replace(' ', '_')}.db"


@cache
def folder() -> Path:
    """Where the ranks have written; the first to ask in a test run starts them."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    place = Path(tempfile.gettempdir()) / f"nethook-two-ranks-{run}"
    atexit.register(_leave, place, os.getpid())
    try:
        place.mkdir()
    except FileExistsError:  # another worker does it
        until = time.monotonic() + 300
        (place / f"user-{os.getpid()}").touch()
        while not (place / "done").exists() and time.monotonic() < until:
            time.sleep(0.2)
        return place
    (place / f"user-{os.getpid()}").touch()
    _start(place)
    (place / "done").touch()
    return place


def _leave(place: Path, process: int) -> None:
    """The last worker of a test run to end takes everything away."""
    if os.getpid() == process:
        (place / f"user-{process}").unlink(missing_ok=True)
        if not list(place.glob("user-*")):
            shutil.rmtree(place, ignore_errors=True)


def _start(place: Path) -> None:
    here = Path(__file__).resolve().parents[2]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = f"{here / 'src'}{os.pathsep}{here}"
    ranks = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.modes.ranks_program", str(rank), str(place)],
            env=environment, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for rank in range(WORLD)
    ]  # fmt: skip
    said = [rank.communicate(timeout=300)[0] for rank in ranks]
    codes = [rank.returncode for rank in ranks]
    # The last thing that rank 1 does is to die.
    assert codes == [0, -signal.SIGKILL], f"{codes}\n{said[0]}\n{said[1]}"


@cache
def _results(place: str) -> list[dict[str, Any]]:
    return [json.loads(Path(place, f"rank{r}.json").read_text()) for r in range(WORLD)]


def run_all(rank: int, place: Path) -> dict[str, Any]:
    """Every scenario, as it is and without its guard; errors are results."""
    results: dict[str, Any] = {}
    for name, (function, guard) in SCENARIOS.items():
        for label, off in ((name, nullcontext), (f"{name} without", guard)):
            try:
                with off():
                    results[label] = function(rank, place / f"{label.replace(' ', '_')}.db")
            except Exception as error:
                results[label] = {"error": f"{type(error).__name__}: {error}"}
    return results


def checked(check: Callable[[str], None], name: str) -> Callable[..., None]:
    """A check of a cell `(model, off)` that looks at the scenario, or at its twin."""

    def on_ranks(model: str, off: Any) -> None:
        check(name if off is nullcontext else f"{name} without")

    on_ranks.__module__ = check.__module__
    return on_ranks
