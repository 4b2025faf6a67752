"""`nethook demo`: the half-minute answer to "what is this?"."""

from __future__ import annotations

import shlex
from pathlib import Path
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
    typer.echo("\nNow see")
    typer.echo(f"  both runs in the browser:    nethook ui {shlex.quote(str(to))} --open")
    typer.echo("  what your own script does:   nethook run train.py")
    typer.echo(f"  the report of the first run: {report.absolute().as_uri()}")


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
