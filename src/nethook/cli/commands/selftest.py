"""`nethook selftest`: does nethook work on this machine and device?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nethook.cli.exit import NO, errors_in_words


def selftest(
    device: Annotated[
        str, typer.Option("--device", help="The device to train on: cpu, cuda, cuda:1, mps ...")
    ] = "cpu",
    to: Annotated[
        Path | None, typer.Option("--to", help="Also write the answers to this file, as JSON.")
    ] = None,
    require_kernel: Annotated[
        bool, typer.Option("--require-kernel", help="Fail where the compiled kernel is missing.")
    ] = False,
) -> None:
    """Train a small network with and without nethook, and compare the two."""
    with errors_in_words("selftest"):
        import json

        from nethook.files import write_file
        from nethook.selftest.report import about, answers, as_data, usable

        chosen = usable(device)
        typer.echo("  ".join(f"{name} {fact}" for name, fact in about(chosen).items()))
        given = []
        for answer in answers(chosen):
            typer.echo(str(answer))
            given.append(answer)
        if to is not None:
            write_file(to, (json.dumps(as_data(chosen, given), indent=2) + "\n").encode())
    failed = [answer.name for answer in given if answer.state == "failed"]
    if require_kernel and given[0].state != "passed":
        failed.append(given[0].name)
    typer.echo(f"failed: {', '.join(failed)}" if failed else "nethook works here")
    if failed:
        raise typer.Exit(NO)
