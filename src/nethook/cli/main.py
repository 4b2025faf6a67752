"""The command `nethook`.

    nethook --help
    nethook --version
    nethook sites models.py:Net --input 1x3x224x224
    nethook report RUN

A command imports what it needs inside its function: printing the help must not
load torch, and a script that is run by nethook must be the first to import it.
"""

from __future__ import annotations

from typing import Annotated

import typer

from nethook.cli import diff, export, report
from nethook.cli.sites import sites

# Tracebacks stay Python's own: the scripts of users will run below this command, and their errors
# must look as they always do.
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command()(sites)


def _print_version(wanted: bool) -> None:
    if wanted:
        import nethook

        typer.echo(f"nethook {nethook.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - read by its callback
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Look inside any PyTorch network without changing it."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command("report")(report.report)
app.command("diff")(diff.diff)
app.command("export")(export.export)


def main() -> None:
    """Run the command line; the entry point of `nethook` and of `python -m nethook`."""
    app(prog_name="nethook")
