"""`nethook diff A B`: where two runs diverge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nethook.cli.exit import NO, errors_in_words
from nethook.cli.parameters import OlderTo, local_run, run_files


def diff(
    first: Annotated[
        Path,
        typer.Argument(
            metavar="A",
            help="A run file.",
            show_default=False,
            autocompletion=run_files,
            parser=local_run,
        ),
    ],
    second: Annotated[
        Path,
        typer.Argument(
            metavar="B",
            help="Another run file.",
            show_default=False,
            autocompletion=run_files,
            parser=local_run,
        ),
    ],
    to: Annotated[
        Path | None,
        typer.Option("--to", help="Also write an HTML page with figures to this file."),
    ] = None,
    older: OlderTo = None,
) -> None:
    """Show where two runs first diverge: the step, the layer and the quantity.

    The exit code is 0 if everything that both recorded is equal, 1 if it is not, and 2 if a run
    cannot be read.
    """
    with errors_in_words("diff"):
        from nethook.figures.difference import Difference
        from nethook.figures.reports import difference_page
        from nethook.text.escape import line

        difference = Difference(first, second)
        typer.echo(difference.text())
        if page := to or older:
            typer.echo(f"\n{line(difference_page(difference, page))}")
    if not difference.parting.same:
        raise typer.Exit(NO)
