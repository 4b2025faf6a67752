"""`nethook report RUN`: a run as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nethook.cli.exit import errors_in_words


def report(
    run: Annotated[Path, typer.Argument(help="The run file.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option(
            "--to",
            "--output",
            "-o",
            help="The HTML file (default: the name of the run with .html).",
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the report in a browser.")] = False,
) -> None:
    """Write a report of a run: one HTML file that works offline."""
    with errors_in_words():
        from nethook.figures.reports import report as write
        from nethook.text.escape import line

        made = write(run, output if output is not None else run.with_suffix(".html"))
    if show:
        import webbrowser

        webbrowser.open(made.absolute().as_uri())
    typer.echo(line(made))
