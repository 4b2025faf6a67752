"""`nethook ui`: the page of a folder of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nethook.cli.exit import errors_in_words


def ui(
    place: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR|FILE]", help="A folder of runs, or one run file; else `runs`, or here."
        ),
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", help="Else the first free one from 8420 on.")
    ] = None,
    host: Annotated[
        str,
        typer.Option("--host", help="Bind to another address than 127.0.0.1."),
    ] = "127.0.0.1",
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            help="A file with the token, for scripts; created with mode 0600 if it is missing.",
        ),
    ] = None,
    no_token: Annotated[
        bool,
        typer.Option(
            "--no-token",
            help="Ask for no token: anyone who can reach the address can read the runs.",
        ),
    ] = False,
    show: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
    wait: Annotated[bool, typer.Option("--wait", hidden=True)] = False,
    beside: Annotated[int | None, typer.Option("--beside", hidden=True)] = None,
) -> None:
    """Serve a page on which runs are seen, also while they train. Ctrl-C ends it."""
    with errors_in_words():
        from nethook.errors import OptionError
        from nethook.page.live.serving import serve

        if no_token and token_file is not None:
            raise OptionError("`--no-token` and `--token-file` exclude each other. Leave one out.")
        if place is None:
            place = Path("runs") if Path("runs").is_dir() else Path()
        serve(
            place, host=host, port=port, with_token=not no_token, token_file=token_file,
            show=show, wait=wait, beside=beside,
            say=lambda text: typer.echo(f"nethook ui: {text}", err=beside is not None),
        )  # fmt: skip
