"""`nethook run` among the other commands: in their list, and for shells that complete options.

The command itself goes its own way (`entry`, `run`). Here it is only described, from the parser
that reads it.
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from nethook.cli.commands.run import main, parser
from nethook.cli.parameters import one_of, run_files


def listed() -> Callable[..., None]:
    """A function with the parameters of `nethook run`, for typer to read."""

    def run(**_: Any) -> None:
        """Run a training script unchanged, watch it train, and print a verdict."""
        main([])  # never reached with arguments: `entry` takes those elsewhere

    # A script and all of its arguments; without an answer of ours a shell offers files.
    script = Annotated[list[str] | None, typer.Argument()]
    parameters = [_parameter(action) for action in parser()._actions if action.dest != "help"]
    parameters.append(_keyword("script", script))
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _parameter(action: argparse.Action) -> inspect.Parameter:
    """An option of argparse as a parameter of typer."""
    words = action.option_strings
    if action.nargs == 0:
        return _keyword(action.dest, Annotated[bool, typer.Option(*words, help=action.help)], False)
    if action.choices is not None:
        offered: Any = one_of(*action.choices)
    else:
        offered = run_files if action.dest == "to" else None
    option = typer.Option(*words, help=action.help, autocompletion=offered)
    return _keyword(action.dest, Annotated[str | None, option])


def _keyword(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )
