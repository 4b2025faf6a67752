"""`nethook export RUN --to csv`: a run for another program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nethook.cli.exit import errors_in_words


def export(
    run: Annotated[Path, typer.Argument(help="The run file.", show_default=False)],
    to: Annotated[
        str, typer.Option("--to", help="csv, parquet or tensorboard.", show_default=False)
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A new folder; else NAME-FORMAT beside the run."),
    ] = None,
) -> None:
    """Write a run as CSV, Parquet or for TensorBoard."""
    with errors_in_words():
        from nethook.exporting.export import export as write
        from nethook.text.escape import line

        written = write(run, to, output)
    for path in written:
        typer.echo(line(path))
