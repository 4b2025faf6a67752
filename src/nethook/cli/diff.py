"""`nethook diff A B`: where two runs diverge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nethook.cli.exit import errors_in_words


def diff(
    first: Annotated[Path, typer.Argument(help="A run file.", show_default=False)],
    second: Annotated[Path, typer.Argument(help="Another run file.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option(
            "--to", "--output", "-o", help="Also write an HTML page with figures to this file."
        ),
    ] = None,
) -> None:
    """Show where two runs first diverge: the step, the layer and the quantity.

    The exit code is 0 if everything that both recorded is equal, 1 if it is not, and 2 if a run
    cannot be read.
    """
    with errors_in_words():
        from nethook.figures.difference import Difference
        from nethook.figures.reports import difference_page
        from nethook.text.escape import line

        difference = Difference(first, second)
        typer.echo(difference.text())
        if output is not None:
            typer.echo(f"\n{line(difference_page(difference, output))}")
    raise typer.Exit(0 if difference.parting.same else 1)
