"""A run from its first to its last line: the script, and around it what nethook does."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from nethook.hooks.imports import when_imported
from nethook.running.detecting.following import Session
from nethook.running.imports import leave_to_script, world_of_ours
from nethook.running.program import Program
from nethook.running.tracebacks import one_line, reached_script, show


@dataclass(eq=False)
class Outcome:
    """How a script ended.

    Arguments:
        error: the error that it ended with, in one line; "" without one.
        interrupted: whether that was Ctrl-C.
        found: whether there was such a script; if not, Python has said so.
        seconds: how long it took.
    """

    error: str = ""
    interrupted: bool = False
    found: bool = True
    began: float = field(default_factory=time.monotonic)
    seconds: float = 0.0


def run_program(
    program: Program,
    session: Session,
    close: Callable[[Outcome], None],
    *,
    code_of: Callable[[Outcome], int | None] | None = None,
) -> None:
    """Runs a program, follows what it trains, and calls `close` as the last thing of the process.

    Arguments:
        program: what is run.
        session: what follows it.
        close: shows the verdict. It is called after everything that the script has registered
            with `atexit`, since it was registered before.
        code_of: with it, the run is closed when the script's last line was run, and the process
            ends with the code that it returns, if it is not None. It is closed then for trackers,
            too: what the script has open in one ends with `atexit`.

    Raises:
        BaseException: what ends the script, so that the process ends as it would have without
            nethook. Its traceback has been printed.
    """
    outcome = Outcome()
    pid = os.getpid()

    def finish() -> None:
        if os.getpid() == pid:
            outcome.seconds = outcome.seconds or time.monotonic() - outcome.began
            with world_of_ours():
                session.end(outcome.error, interrupted=outcome.interrupted)
                close(outcome)
            if outcome.interrupted:
                _mark_as_interrupted()

    atexit.register(finish)
    when_imported("torch", session.begin)
    leave_to_script()
    error = _error_of(program)
    # Not inside `except`: what a hook of the script raises now has no context.
    if error is not None and not isinstance(error, SystemExit):
        outcome.error = one_line(error)
        outcome.interrupted = isinstance(error, KeyboardInterrupt)
        show(error)
        _end_with(code_of, outcome, session)
        sys.excepthook = _Silent(sys.excepthook)
    else:
        if error is not None and error.code not in (None, 0):
            outcome.error = f"sys.exit({error.code!r})"
            outcome.found = reached_script(error)
        _end_with(code_of, outcome, session)
    if error is not None:
        raise error


def _error_of(program: Program) -> BaseException | None:
    try:
        program.run()
    except BaseException as error:
        return error
    return None


def _end_with(
    code_of: Callable[[Outcome], int | None] | None, outcome: Outcome, session: Session
) -> None:
    """Ends with another code than the script's, where that was asked for."""
    outcome.seconds = time.monotonic() - outcome.began
    if not session.mine or (code_of is None and not session.options.sinks):
        return
    session.end(outcome.error, interrupted=outcome.interrupted)
    code = None if code_of is None else code_of(outcome)
    if code is not None:
        raise SystemExit(code)


def _mark_as_interrupted() -> None:
    """Lets the process end as one that Ctrl-C has ended, which its parent can tell.

    Python notes that when code of the outermost level ends so, and forgets it as soon as a text is
    executed again, as the import of many a module does.
    """
    with contextlib.suppress(KeyboardInterrupt):
        exec("raise KeyboardInterrupt")


class _Silent:
    """Stands in for the excepthook once: the error on its way out was shown already."""

    def __init__(self, hook: Callable[..., object]) -> None:
        self._hook = hook

    def __call__(self, *_: object) -> None:
        sys.excepthook = self._hook
