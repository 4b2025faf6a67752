"""The calls of one site as the taps write them, and why there may be none."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from nethook.errors import NotAskedError, NotRunError
from nethook.hooks.threads import others_ran
from nethook.tracing.tape.entry import State


class SiteCalls:
    """The calls of one site: `entries`, and how many there were in all."""

    __slots__ = (
        "__weakref__", "_counted", "address", "entries", "names", "skipped", "state", "type_name",
        "why",
    )  # fmt: skip

    def __init__(self, state: State, address: str, names: Sequence[str], type_name: str) -> None:
        self.state = state
        self.why: str | None = None  # why it may not be called although the model has it
        self.skipped: str | None = None  # why a call of it was not recorded
        self._counted = 0
        self.address = address
        self.names = names
        self.type_name = type_name
        # As the taps write them: the fields of an Entry, without those at the end that are unset.
        self.entries: list[tuple[Any, ...]] | deque[tuple[Any, ...]] = []

    @property
    def total(self) -> int:
        """How many calls there were, those that were not kept included."""
        return max(self._counted, len(self.entries))

    def limit(self, most: int) -> Callable[[tuple[Any, ...]], None]:
        """Keeps only the latest calls from now on; returns what adds one."""
        self.entries = deque(maxlen=most)
        return self._add_counted

    def _add_counted(self, entry: tuple[Any, ...]) -> None:
        self._counted += 1
        self.entries.append(entry)

    def clear(self) -> None:
        """Forgets all calls."""
        self.entries.clear()
        self._counted = 0

    def not_asked(self, what: str, option: str) -> NotAskedError:
        """The error for a quantity that the trace did not record."""
        return NotAskedError(
            f"the {what} of {self.address!r} were not recorded: trace with {option}."
        )

    def raise_not_run(self) -> NoReturn:
        """Says why there is no call to read."""
        name = repr(self.address)
        if self.skipped is not None:
            raise NotRunError(f"{name} was called, but {self.skipped}.")
        if self.state.stopped_at is not None:
            raise NotRunError(
                f"{name} was not reached: stop=True ended the forward after "
                f"{self.state.stopped_at!r}, because in an earlier forward of this model {name} "
                "did not run. Trace without stop=True, or ask for it on its own."
            )
        raise self.why_not_run()

    def why_not_run(self) -> NotRunError:
        """The error for a site that nothing kept from being called."""
        name = repr(self.address)
        if self.why is not None:
            return NotRunError(f"{name} has not been called: {self.why}")
        ran = (
            f"although the model ran {self.state.forwards} times in it: this forward does not "
            "call it, or calls its .forward(), or uses its parameters directly"
            if self.state.forwards
            else "nor has the model"
        )
        owner = self.state.owner
        others = "" if owner is None else others_ran(owner, "trace")
        return NotRunError(f"{name} has not been called in this scope, {ran}.{others}")
