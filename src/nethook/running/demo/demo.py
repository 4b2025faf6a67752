"""The two runs of `nethook demo`: one that goes well, and one with a real fault."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nethook.running.closing import closing_text, written_files
from nethook.running.following import Session
from nethook.running.options import RunOptions
from nethook.running.paths import run_file
from nethook.running.program import Program
from nethook.running.runner import Outcome
from nethook.running.trying.progress import try_at_end
from nethook.running.trying.try_fixes import Trials
from nethook.running.watches import start_watching


@dataclass(frozen=True)
class DemoRun:
    """One of the runs: its name, the arguments of the script, and whether fixes are tried."""

    name: str
    arguments: tuple[str, ...] = ()
    try_fix: bool = False


RUNS: Final = (
    DemoRun("demo-healthy"),
    # A hundred times too much: after a few steps hardly a unit of `relu3` is ever active.
    DemoRun("demo-dead-units", ("--lr", "0.1"), try_fix=True),
)


def train(run: DemoRun, folder: Path) -> tuple[Path, str]:
    """Run the script of the demo in this process, followed as `nethook run` follows it.

    The script is copied to the folder, to be read and tried with other settings.

    Returns:
        The run file, and what `nethook run` prints at the end.
    """
    main = _script(folder / "digits.py")
    to = run_file(str(folder / f"{run.name}-{{time}}.db"), run.name)
    # So short a run is over before the cost of its first steps is saved again: all is measured.
    session = Session(RunOptions(to, run.name, budget=None), start_watching)
    session.begin()
    try:
        main(run.arguments)
    finally:
        session.end()
    if run.try_fix:
        trials = Trials(Program(str((folder / "digits.py").absolute()), run.arguments))
        try_at_end(session, trials, sys.stderr)
    text = closing_text(session, Outcome(), colour=sys.stdout.isatty())
    return written_files(session)[0], text


def _script(path: Path) -> Callable[[Sequence[str]], None]:
    """The function `main` of a copy of the script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    source = Path(__file__).with_name("digits.py").read_bytes()
    path.write_bytes(source)
    names: dict[str, Any] = {"__name__": "digits"}
    exec(compile(source, str(path.absolute()), "exec", dont_inherit=True), names)
    main: Callable[[Sequence[str]], None] = names["main"]
    return main
