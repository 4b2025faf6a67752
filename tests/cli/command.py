"""Commands of nethook, called in this process."""

from __future__ import annotations

from click.testing import Result
from typer.testing import CliRunner

from nethook.cli.main import app


def run(*arguments: object) -> Result:
    """`nethook` with these arguments."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])
