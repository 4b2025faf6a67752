"""`nethook demo`: the half-minute answer to "what is this?"."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    to: Annotated[
        Path, typer.Option("--to", help="The folder for the runs and the report.")
    ] = Path("runs"),
) -> None:
    """Train a small network twice, once with a fault, and show verdicts and a proven fix."""
    from nethook.running.demo.demo import RUNS, train

    paths = []
    for run in RUNS:
        options = "--budget none --try-fix" if run.try_fix else "--budget none"
        command = [f"nethook run {options} digits.py", *run.arguments]
        typer.secho(f"\n$ {' '.join(command)}", bold=True)
        path, verdict = train(run, to)
        typer.echo(verdict, nl=False)
        paths.append(path)
    report = _report(paths[-1])
    typer.echo("")
    if report is not None:
        typer.echo(f"The report of the second run: {report}")
    else:
        typer.echo("For a report with pictures of every layer: pip install 'nethook[ui]'")


def _report(path: Path) -> Path | None:
    """Makes the report; None where what it needs is not installed."""
    from importlib.util import find_spec

    if find_spec("nethook.figures") is None or find_spec("plotly") is None:
        return None
    from importlib import import_module

    reporting = import_module("nethook.figures.reports")
    made: Path = reporting.report(path, path.with_suffix(".html"))
    return made
