"""`nethook export RUN… --format csv`: runs for another program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nethook.cli.exit import errors_in_words
from nethook.cli.parameters import OlderTo, RunFiles, one_of


def export(
    runs: RunFiles,
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
        typer.Option(
            "--to",
            help="The folder to create (default: NAME-FORMAT beside the run; of several runs "
            "runs-FORMAT).",
        ),
    ] = None,
    per_rank: Annotated[
        bool, typer.Option("--per-rank", help="Of runs with several ranks, each rank by itself.")
    ] = False,
    older: OlderTo = None,
) -> None:
    """Export runs to CSV, Parquet or TensorBoard.

    Several runs become one folder of tables, with run, rank, revision and settings as columns.
    """
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
        if len(runs) == 1 and not per_rank:
            written = write(runs[0], form, to or older)
        else:
            from nethook.exporting.many import export_runs

            written = export_runs(
                runs, form, to or older or Path(f"runs-{form}"), per_rank=per_rank
            )
    for path in written:
        typer.echo(line(path))
