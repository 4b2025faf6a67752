"""`nethook report RUN`: a run, or studies that were saved, as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nethook.cli.exit import errors_in_words
from nethook.cli.parameters import OlderTo, local_run, report_files

Reported = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", show_default=False, autocompletion=report_files, parser=local_run,
        help="The run file, or its address in an object store; or a saved study (.json), or a "
        "folder of them.",
    ),
]  # fmt: skip


def report(
    run: Reported,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            help="The HTML file (default: the name of the run or study with .html).",
        ),
    ] = None,
    older: OlderTo = None,
    pictures: Annotated[
        bool,
        typer.Option(
            "--pictures",
            help="With snapshots and studied inputs: data may be recognized in them.",
        ),
    ] = False,
    show: Annotated[bool, typer.Option("--open", help="Open the report in a browser.")] = False,
) -> None:
    """Write a report of a run, or of saved studies: one HTML file that works offline."""
    with errors_in_words("report"):
        from nethook.figures.reports import report as write
        from nethook.text.escape import line

        made = write(run, to or older or _beside(run), pictures=pictures)
    if show:
        import webbrowser

        webbrowser.open(made.absolute().as_uri())
    typer.echo(line(made))


def _beside(run: Path) -> Path:
    from nethook.runs.stores import beside

    # That of a run's studies must not take the place of the run's own.
    return run.with_name(f"{run.name}.html") if run.is_dir() else beside(run, ".html")
