"""`nethook ui`: the page of a folder of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nethook.cli.exit import errors_in_words
from nethook.cli.parameters import local_runs, run_files


def ui(
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR|FILE",
            autocompletion=run_files,
            parser=local_runs,
            help="A folder with runs, or a run file, or the address of either in an object store "
            "(default: `runs` if it exists, else this folder).",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", help="The port (default: the first free one from 8420 on)."),
    ] = None,
    host: Annotated[
        str,
        typer.Option("--host", help="The address to listen on."),
    ] = "127.0.0.1",
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            help="A file with the access token, for scripts; created with mode 0600 if missing.",
        ),
    ] = None,
    no_token: Annotated[
        bool,
        typer.Option(
            "--no-token",
            help="Require no token: anyone who can reach the address can read the runs.",
        ),
    ] = False,
    base: Annotated[
        str,
        typer.Option(
            "--base-path",
            help="The path that a proxy has the page under, such as /proxy/8420/.",
        ),
    ] = "",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            help="The host name of that proxy (may be repeated); other names are refused.",
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    wait: Annotated[bool, typer.Option("--wait", hidden=True)] = False,
    beside: Annotated[int | None, typer.Option("--beside", hidden=True)] = None,
) -> None:
    """Serve a web page that shows runs, also while they train. Ctrl-C stops it."""
    with errors_in_words("ui"):
        from nethook.errors import OptionError
        from nethook.page.live.serving import serve

        if no_token and token_file is not None:
            raise OptionError("`--no-token` and `--token-file` exclude each other. Leave one out.")
        if path is None:
            path = Path("runs") if Path("runs").is_dir() else Path()
        serve(
            path, host=host, port=port, with_token=not no_token, token_file=token_file,
            show=show, wait=wait, beside=beside, allow_hosts=allow_host or (), base=base,
            say=lambda text: typer.echo(f"nethook ui: {text}", err=beside is not None),
        )  # fmt: skip
