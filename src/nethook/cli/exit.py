"""How a command ends: the same codes for all, and one line on stderr when something is wrong.

0   it worked
1   the answer is no: two runs differ, an operation is not known; or the script itself failed
2   a wrong option, or a file that cannot be read
3   a finding at or above `--fail-on`
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import typer

NO: Final = 1
WRONG: Final = 2
FOUND: Final = 3


def fail(command: str, message: object) -> typer.Exit:
    """Says what is wrong in one line; what is returned is to be raised."""
    from nethook.text.escape import line

    typer.echo(f"nethook {command}: {line(message)}", err=True)
    return typer.Exit(WRONG)


@contextmanager
def errors_in_words(command: str) -> Iterator[None]:
    """What nethook raises is said in a line; what anybody else raises keeps its traceback."""
    from nethook.errors import NethookError

    try:
        yield
    except NethookError as error:
        raise fail(command, error) from None
