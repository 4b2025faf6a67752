"""`nethook demo`: the half-minute answer to "what is this?"."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nethook.running.demo.demo import DemoRun


def demo(
    to: Annotated[
        Path, typer.Option("--to", help="The folder for the scripts, the runs and the report.")
    ] = Path("runs"),
) -> None:
    """Find a common mistake in a training script, try its fix, and train again without it."""
    from nethook.running.demo.demo import FORGOTTEN, RUNS

    faulty, fixed = RUNS
    typer.echo("A training script with a common mistake, run by nethook instead of python:")
    path = _trained(faulty, to)
    typer.echo(f"\nThe same script with the line that was missing, {FORGOTTEN.strip()}:")
    _trained(fixed, to)
    report = _report(path)
    if report is None:
        typer.echo("\nFor reports and the page: pip install 'nethook[ui]'")
        return
    command = _command()
    typer.echo("\nNow see")
    typer.echo(f"  both runs in the browser:    {command} ui {shlex.quote(str(to))} --open")
    typer.echo(f"  what your own script does:   {command} run train.py")
    typer.echo(f"  the report of the first run: {report.absolute().as_uri()}")


def _command() -> str:
    """How nethook is called here: `make demo` has it in an environment that is not active."""
    if which("nethook"):
        return "nethook"
    called = Path(sys.argv[0])
    if called.name == "nethook":
        return shlex.quote(str(called))
    return f"{shlex.quote(sys.executable)} -m nethook"


def _trained(run: DemoRun, folder: Path) -> Path:
    """Trains, and prints the command and all that `nethook run` would print."""
    from nethook.running.demo.demo import script_of, train

    script = script_of(run, folder)
    options = "--try-fix " if run.try_fix else ""
    typer.secho(f"\n$ nethook run {options}{shlex.quote(str(script))}", bold=True)
    path, verdict = train(run, script)
    typer.echo(verdict, nl=False)
    return path


def _report(path: Path) -> Path | None:
    """Makes the report; None where what it needs is not installed."""
    from importlib.util import find_spec

    if find_spec("nethook.figures") is None or find_spec("plotly") is None:
        return None
    from importlib import import_module

    reporting = import_module("nethook.figures.reports")
    made: Path = reporting.report(path, path.with_suffix(".html"))
    return made
