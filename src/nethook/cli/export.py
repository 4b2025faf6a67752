"""`nethook export RUN --format csv`: a run for another program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nethook.cli.exit import errors_in_words
from nethook.cli.parameters import OlderTo, RunFile, one_of


def export(
    run: RunFile,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="The format: csv, parquet or tensorboard.",
            show_default=False,
            autocompletion=one_of("csv", "parquet", "tensorboard"),
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", help="The folder to create (default: NAME-FORMAT next to the run)."),
    ] = None,
    older: OlderTo = None,
) -> None:
    """Export a run to CSV, Parquet or TensorBoard."""
    with errors_in_words("export"):
        from nethook.errors import OptionError
        from nethook.exporting.export import FORMATS
        from nethook.exporting.export import export as write
        from nethook.text.escape import line

        if form is None and to is not None and str(to) in FORMATS:  # as 0.1 had it
            typer.echo(f"nethook export: --to {to} is now --format {to}.", err=True)
            form, to = str(to), None
        if form not in FORMATS:
            got = "none" if form is None else repr(form)
            raise OptionError(f"`--format` must be one of {', '.join(FORMATS)}; got {got}.")
        written = write(run, form, to or older)
    for path in written:
        typer.echo(line(path))
