"""An error inside nethook never reaches the script.

Everything of a watch that torch calls catches what it raises and hands it to `Guard.failed`: that
part of watching is turned off, an event goes to the run, and the first failure is a warning. There
are two ways to get there:

- a hook (`measuring.taps.WatchHook`) has its own `try`, because each of them also keeps time;
- the recorders behind the hooks mark methods with `@contained`, so that one of them fails alone. An
  error in how a loss is described must not end the counting of backward passes. What is called in
  every step is not marked, for that is one more function to call: `Session` has a `try` around it.

What the handler of a signal raises (Ctrl-C in the midst of a hook) belongs to the script, and goes
on. In a process that was forked (a DataLoader's worker) everything is off from the start.
"""

from __future__ import annotations

import functools
import os
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from nethook.hooks.stack import raised_by_signal
from nethook.runs.secrets.masking import masked_text

_P = ParamSpec("_P")
_R = TypeVar("_R")

MOST_FAILURES: Final = 8
"""Parts that may fail before watching as a whole is given up."""


class WatchWarning(UserWarning):
    """Something in nethook failed while it watched; training was not affected."""


class Guard:
    """Whether watching is on, and what has failed.

    Arguments:
        tell: called with the part that failed and the text of the error; may fail itself.
        give_up: takes everything off.
    """

    def __init__(self, tell: Callable[[str, str, str], None], give_up: Callable[[], None]) -> None:
        self.alive = True
        self.failures = 0
        self.silent = False  # whether it is in the run's events alone
        self._tell = tell
        self._give_up = give_up
        self._failed: set[str] = set()  # parts
        self._stopped = False
        _GUARDS.add(self)

    def failed(self, name: str, error: Exception, turn_off: Callable[[], None] | None) -> None:
        """A part of watching has failed: it is turned off, and that is told once.

        Arguments:
            name: what the part is called in the event and in the warning.
            error: what it raised; if the handler of a signal did, it is raised again.
            turn_off: stops the part; None where watching cannot go on without it.
        """
        if raised_by_signal(error):
            raise error
        alive = self.alive
        self.failures += alive
        try:
            if turn_off is not None:
                turn_off()
            if alive and (turn_off is None or self.failures > MOST_FAILURES):
                self.stop()
            if alive and name not in self._failed:
                self._failed.add(name)
                lines = "".join(traceback.format_exception(error)[-6:])
                self._tell(name, f"{type(error).__name__}: {error}", lines)
        except Exception:  # what reports a failure may be what fails
            self.alive = False
        if alive and self.failures == 1 and not self.silent:
            self._warn(name, error)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """A block in which nothing is watched: copies run in it that are none of the script's."""
        before, self.alive = self.alive, False
        try:
            yield
        finally:
            self.alive = before and not self._stopped

    def stop(self) -> None:
        """Everything is off from now on."""
        self._stopped = True
        self.alive = False
        try:
            self._give_up()
        except Exception:  # hooks that could not be taken off do nothing any more
            return

    def _warn(self, name: str, error: Exception) -> None:
        rest = "that part of watching is off" if self.alive else "watching has ended"
        try:
            warnings.warn(
                f"nethook.watch failed in {name} ({type(error).__name__}: "
                f"{masked_text(str(error))}): training is not affected; {rest}.",
                WatchWarning,
                stacklevel=3,
            )
        except Warning:  # warnings are errors here; then this one is in the run's events alone
            return


class FailsAlone:
    """A recorder that is turned off by itself where it fails, and nothing else with it."""

    part = ""
    """What it is called in the event and in the warning."""
    off = False
    _watching: Any
    """Something that has a `guard`: a journal."""

    def turn_off(self) -> None:
        """It does nothing from now on, and holds nothing."""
        self.off = True

    def failed(self, error: Exception) -> None:
        """It has raised this."""
        self._watching.guard.failed(self.part, error, self.turn_off)


_T = TypeVar("_T", bound=FailsAlone)


def contained(
    method: Callable[Concatenate[_T, _P], _R],
) -> Callable[Concatenate[_T, _P], _R | None]:
    """A method that returns None once its recorder is off; an error turns the recorder off."""

    @functools.wraps(method)
    def call(self: _T, /, *args: _P.args, **kwargs: _P.kwargs) -> _R | None:
        if self.off:
            return None
        try:
            return method(self, *args, **kwargs)
        except Exception as error:
            self.failed(error)
            return None

    return call


# Those of this process, to be turned off in a child.
_GUARDS: weakref.WeakSet[Guard] = weakref.WeakSet()


def _off_in_child() -> None:
    for guard in list(_GUARDS):
        guard.stop()


# Looked up when it is called, so that a test can switch it off.
os.register_at_fork(after_in_child=lambda: _off_in_child())  # noqa: PLW0108
