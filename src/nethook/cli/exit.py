"""How a command ends when something is wrong: one line on stderr, and exit code 2."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer


@contextmanager
def errors_in_words() -> Iterator[None]:
    """What nethook raises is said in a line; what anybody else raises keeps its traceback."""
    from nethook.errors import NethookError

    try:
        yield
    except NethookError as error:
        from nethook.text.escape import line

        typer.echo(f"nethook: {line(error)}", err=True)
        raise typer.Exit(2) from None
