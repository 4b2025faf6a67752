"""The command `nethook`.

    nethook --help
    nethook --version
    nethook run train.py
    nethook diagnose runs/train.db
    nethook replay runs/train.db
    nethook demo
    nethook report RUN
    nethook ui runs
    nethook sites models.py:Net --input 1x3x224x224

A command imports what it needs inside its function: printing the help must not load torch, and a
script that is run by nethook must be the first to import it.
"""

from __future__ import annotations

from typing import Annotated

import typer

from nethook.cli.commands import (
    demo,
    diagnose,
    diff,
    export,
    merge,
    metrics,
    publish,
    replay,
    report,
    selftest,
    sites,
    ui,
)
from nethook.cli.group import Commands
from nethook.cli.run_listed import listed

# Tracebacks stay Python's own.
app = typer.Typer(cls=Commands, pretty_exceptions_enable=False)


def _print_version(wanted: bool) -> None:
    if wanted:
        from nethook.cli.commands.version import lines

        for line in lines():
            typer.echo(line)
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - read by its callback
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the versions of nethook and torch, and whether they work together.",
        ),
    ] = False,
) -> None:
    """Look inside any PyTorch network without changing it."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command("run", add_help_option=False)(listed())
app.command("diagnose")(diagnose.diagnose)
app.command("check", hidden=True)(diagnose.diagnose)  # what it was called in 0.1
app.command("replay")(replay.replay)
app.command("demo")(demo.demo)
app.command("report")(report.report)
app.command("ui")(ui.ui)
app.command("diff")(diff.diff)
app.command("export")(export.export)
app.command("merge")(merge.merge)
app.command("metrics")(metrics.metrics)
app.command("publish")(publish.publish)
app.command("sites")(sites.sites)
app.command("selftest")(selftest.selftest)


def main() -> None:
    """Run the command line; `nethook.cli.entry` calls it for everything but `nethook run`."""
    app(prog_name="nethook")
