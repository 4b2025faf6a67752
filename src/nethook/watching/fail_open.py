"""An error inside nethook never reaches the script.

Whatever torch calls hands an exception to `Guard.failed`: one warning, an event in the run, and
that part of watching is off. In a process that was forked (a DataLoader's worker) everything is off
from the start.
"""

from __future__ import annotations

import os
import traceback
import warnings
import weakref
from collections.abc import Callable
from typing import Final, Protocol

from nethook.hooks.stack import raised_by_signal
from nethook.runs.secrets.masking import masked_text

MOST_FAILURES: Final = 8
"""Parts that may fail before watching as a whole is given up."""


class WatchWarning(UserWarning):
    """Something in nethook failed while it watched; training was not affected."""


class _Off(Protocol):
    def turn_off(self) -> None: ...


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
        self._parts: set[str] = set()
        _GUARDS.add(self)

    def failed(self, part: str, error: Exception, turn_off: Callable[[], None] | None) -> None:
        """A part of watching has failed: it is turned off, and said once.

        What the handler of a signal has raised in the midst of it is none of ours, and goes on.
        """
        if raised_by_signal(error):
            raise error
        if not self.alive:
            return
        self.failures += 1
        known = part in self._parts
        self._parts.add(part)
        try:
            if turn_off is None or self.failures > MOST_FAILURES:
                self.stop()
            else:
                turn_off()
            if not known:
                lines = "".join(traceback.format_exception(error)[-6:])
                self._tell(part, f"{type(error).__name__}: {error}", lines)
        except Exception:  # what reports a failure may be what fails
            self.alive = False
        if self.failures == 1 and not self.silent:
            self._warn(part, error)

    def stop(self) -> None:
        """Everything is off from now on."""
        self.alive = False
        try:
            self._give_up()
        except Exception:  # hooks that could not be taken off do nothing any more
            return

    def _warn(self, part: str, error: Exception) -> None:
        rest = "that part of watching is off" if self.alive else "watching has ended"
        try:
            warnings.warn(
                f"nethook.watch failed in {part} ({type(error).__name__}: "
                f"{masked_text(str(error))}): training is not affected; {rest}.",
                WatchWarning,
                stacklevel=3,
            )
        except Warning:  # warnings are errors here; then this one is in the run's events alone
            return


# Those of this process, to be turned off in a child.
_GUARDS: weakref.WeakSet[Guard] = weakref.WeakSet()


def _off_in_child() -> None:
    for guard in list(_GUARDS):
        guard.stop()


# Looked up when it is called, so that a test can switch it off.
os.register_at_fork(after_in_child=lambda: _off_in_child())  # noqa: PLW0108
