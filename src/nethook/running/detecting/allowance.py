"""How much time it may take to look for models."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

# Taking a census of the process costs some ten milliseconds. This many seconds are free; after that
# it may take this share of the time: a script may make a new module in every step.
FREE: Final = 1.0
SHARE: Final = 0.005
# Backward passes that are looked at since a module was last given a parameter.
PASSES: Final = 8


class Allowance:
    """What looking for models has taken since the script began, and whether that is enough."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._spent = 0.0
        self._passes = 0

    @property
    def is_used_up(self) -> bool:
        """Whether looking has taken all that it may, for now."""
        return self._spent > FREE + SHARE * (time.monotonic() - self._began)

    @contextmanager
    def looking(self) -> Iterator[None]:
        """A block that looks for models."""
        began = time.thread_time()
        try:
            yield
        finally:
            self._spent += time.thread_time() - began

    @property
    def has_passes(self) -> bool:
        """Whether one more backward pass may be looked at."""
        return self._passes < PASSES

    def take_pass(self) -> None:
        """One more backward pass is looked at."""
        self._passes += 1

    def renew_passes(self) -> None:
        """A module was given a parameter: backward passes may be of a new model."""
        self._passes = 0
