"""The two runs of `nethook demo`: one that goes well, and one with a real fault."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nethook.running.closing import closing_text
from nethook.running.follow import start_watching
from nethook.running.options import RunOptions
from nethook.running.places import run_file
from nethook.running.runner import Outcome
from nethook.running.session import Session


@dataclass(frozen=True)
class DemoRun:
    """One of the runs: its name, and the arguments of the script."""

    name: str
    arguments: tuple[str, ...] = ()


RUNS: Final = (
    DemoRun("demo-healthy"),
    # A hundred times too much: after a few steps hardly a unit of `relu3` is ever active.
    DemoRun("demo-dead-units", ("--lr", "0.1")),
)


def train(run: DemoRun, folder: Path) -> tuple[Path, str]:
    """Run the script of the demo in this process, followed as `nethook run` follows it.

    Returns:
        The run file, and what `nethook run` prints at the end.
    """
    from nethook.running import digits

    to = run_file(str(folder / f"{run.name}-{{time}}.db"), run.name)
    session = Session(RunOptions(to, run.name), start_watching)
    session.begin()
    try:
        digits.main(run.arguments)
    finally:
        session.end()
    assert session.watcher is not None
    text = closing_text(session, Outcome(), colour=sys.stdout.isatty(), commands=())
    return session.watcher.paths[0], text
