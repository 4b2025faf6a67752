"""`nethook metrics RUN`: a run as metrics for Prometheus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nethook.cli.exit import errors_in_words
from nethook.cli.parameters import RunFile


def metrics(
    run: RunFile,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", help="The file to write, in one go, as a textfile collector wants it."
        ),
    ] = None,
) -> None:
    """Print the numbers of a run in the text format of Prometheus. It may still be written to."""
    with errors_in_words("metrics"):
        from nethook.errors import OptionError
        from nethook.exporting.openmetrics import openmetrics
        from nethook.files import write_file
        from nethook.runs.reading.run import open_run

        with open_run(run) as opened:
            text = openmetrics(opened)
        if to is not None:
            try:
                write_file(to, text.encode())
            except OSError as error:
                raise OptionError(
                    f"`--to` must be a file that can be written; got {str(to)!r}: {error}."
                ) from None
            return
    typer.echo(text, nl=False)
