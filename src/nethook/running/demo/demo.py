"""The two runs of `nethook demo`: a script with a mistake that is easily made, and without it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nethook.running.closing import closing_text, written_files
from nethook.running.detecting.following import Session
from nethook.running.detecting.watches import start_watching
from nethook.running.options import RunOptions
from nethook.running.paths import run_file
from nethook.running.program import Program
from nethook.running.runner import Outcome
from nethook.running.trying.progress import try_at_end
from nethook.running.trying.try_fixes import Trials
from nethook.text.terminal import screen_of, style_of

FORGOTTEN: Final = "            optimizer.zero_grad()\n"
"""The line that the first script lacks."""


@dataclass(frozen=True)
class DemoRun:
    """One of the runs.

    Arguments:
        name: of the script, and of the run.
        without: a line that the script lacks.
        arguments: of the script.
        try_fix: whether fixes are tried.
    """

    name: str
    without: str = ""
    arguments: tuple[str, ...] = ()
    try_fix: bool = False


RUNS: Final = (DemoRun("digits", FORGOTTEN, try_fix=True), DemoRun("digits_fixed"))


def script_of(run: DemoRun, folder: Path) -> Path:
    """The script of a run, written to the folder, to be read and tried with other settings."""
    folder.mkdir(parents=True, exist_ok=True)
    source = Path(__file__).with_name("digits.py").read_text(encoding="utf-8")
    path = folder / f"{run.name}.py"
    path.write_text(source.replace(run.without, "") if run.without else source, encoding="utf-8")
    return path


def train(run: DemoRun, script: Path) -> tuple[Path, str]:
    """Runs a script in this process, followed as `nethook run` follows it.

    Returns:
        The run file, beside the script, and what `nethook run` prints at the end.
    """
    main = _main(script)
    to = run_file(str(script.parent / f"{run.name}-{{time}}.db"), run.name)
    session = Session(RunOptions(to, run.name), start_watching)
    session.begin()
    try:
        main(run.arguments)
    finally:
        session.end()
    if run.try_fix:
        trials = Trials(Program(str(script.absolute()), run.arguments))
        try_at_end(session, trials, sys.stderr)
    screen = screen_of(sys.stdout)
    rows = None if screen is None else screen.rows
    text = closing_text(session, Outcome(), style=style_of(sys.stdout), rows=rows)
    return written_files(session)[0], text


def _main(script: Path) -> Callable[[Sequence[str]], None]:
    """The function `main` of a script."""
    names: dict[str, Any] = {"__name__": script.stem}
    code = compile(script.read_bytes(), str(script.absolute()), "exec", dont_inherit=True)
    exec(code, names)
    main: Callable[[Sequence[str]], None] = names["main"]
    return main
