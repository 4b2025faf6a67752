"""`nethook merge RUN`: all ranks of a run as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nethook.cli.exit import errors_in_words
from nethook.cli.parameters import RunFile


def merge(
    run: RunFile,
    to: Annotated[
        Path | None,
        typer.Option("--to", help="The new file (default: NAME-merged.db beside the run)."),
    ] = None,
) -> None:
    """Write all ranks of a run as one file. The files of the ranks stay as they are."""
    with errors_in_words("merge"):
        from nethook.runs.merging import merge_run
        from nethook.runs.paths import split_rank
        from nethook.runs.stores import beside
        from nethook.text.escape import line

        name, suffix = split_rank(run)
        written = merge_run(run, to or beside(Path(f"{name}{suffix}"), f"-merged{suffix}"))
    typer.echo(line(written))
