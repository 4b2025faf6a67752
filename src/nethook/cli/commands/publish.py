"""`nethook publish RUN URL`: a run in an object store."""

from __future__ import annotations

from typing import Annotated

import typer

from nethook.cli.exit import errors_in_words
from nethook.cli.parameters import RunFile


def publish(
    run: RunFile,
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL",
            help="A folder in the store, or the whole name: s3://bucket/runs, gs://bucket/a.db",
            show_default=False,
        ),
    ],
) -> None:
    """Copy a run and the files of its other ranks into an object store. It may still train."""
    with errors_in_words("publish"):
        from nethook.errors import OptionError
        from nethook.runs.stores import is_url
        from nethook.runs.stores import publish as copy

        if not is_url(url):
            raise OptionError(f"`URL` must be an address such as s3://bucket/runs; got {url!r}.")
        written = copy(run, url)
    for name in written:
        typer.echo(name)
