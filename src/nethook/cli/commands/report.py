"""`nethook report RUN`: a run as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nethook.cli.exit import errors_in_words
from nethook.cli.parameters import OlderTo, RunFile


def report(
    run: RunFile,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            help="The HTML file (default: the name of the run with .html).",
        ),
    ] = None,
    older: OlderTo = None,
    pictures: Annotated[
        bool,
        typer.Option(
            "--pictures",
            help="With snapshots (feature maps, attention): data may be recognized in them.",
        ),
    ] = False,
    show: Annotated[bool, typer.Option("--open", help="Open the report in a browser.")] = False,
) -> None:
    """Write a report of a run: one HTML file that works offline."""
    with errors_in_words("report"):
        from nethook.figures.reports import report as write
        from nethook.text.escape import line

        made = write(run, to or older or run.with_suffix(".html"), pictures=pictures)
    if show:
        import webbrowser

        webbrowser.open(made.absolute().as_uri())
    typer.echo(line(made))
