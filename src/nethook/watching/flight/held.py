"""The calls that the flight recorder holds on to: with which batch, and in which state.

As a rule these are the calls of the last steps, in a ring. In a step in which nothing is due it is
the last call alone, and little is asked of it: it becomes a member of the ring when somebody wants
to know more.
"""

from __future__ import annotations

import weakref
from typing import Any, Final

from torch import nn

from nethook.torch_private import is_autocast, version_of
from nethook.watching.clock.calls import PLAIN
from nethook.watching.flight.ring import CAP, Call, PlainCall, Ring, has_drawn, random_states
from nethook.watching.journal import Journal

CALM: Final = 16
"""Calls in a row without random numbers after which states are not held in every step."""

MUCH_LARGER: Final = 8
"""Times that a batch in a step in which nothing is due may be larger than the last one whose size
was asked, before holding it would be too much: so it is not asked there."""


class HeldCalls:
    """The last calls.

    Arguments:
        journal: of the watch.
        steps: whose inputs to hold on to; 0 holds none.
    """

    def __init__(self, journal: Journal, steps: int) -> None:
        self._journal = journal
        self._ring = Ring(steps) if steps > 0 else None
        self._last: Call | None = None  # the outermost call that is or was under way, ...
        self.plain = PlainCall()
        """... where it is not this one."""
        self._fits = False  # whether batches are small, as the last one was whose size was asked
        self._calm = 0  # calls in a row that were seen to draw no random numbers

    @property
    def last(self) -> Call | None:
        """The outermost call that is or was under way."""
        if self.plain.held is not None and self._ring is not None:
            self._last = self.plain.kept_in(self._ring)
        return self._last

    @property
    def calls(self) -> list[Call]:
        """Those in the ring, the oldest first."""
        return [] if self._ring is None else self._ring.calls

    def begins(
        self, model: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """An outermost call in training begins."""
        ring, journal, plain = self._ring, self._journal, self.plain
        if ring is None:
            return
        clock, reference = journal.clock, weakref.ref(module)
        # The only batch of a step in which nothing is due: nothing that is read later needs more
        # than the last one, so it is no member of the ring unless something is not finite.
        if (
            kwargs is PLAIN
            and journal.schedule.quiet
            and clock.forwards == 1
            and self._fits
            and not journal.train.has_devices
            and not is_autocast()
        ):
            only = args[0]
            if only.is_cpu and not only.is_inference():
                random = {} if self._calm >= CALM else random_states([])
                plain.kept = None
                plain.held = (model, reference, clock.step, args, version_of(only), random)
                return
        plain.forget()
        self._last = call = ring.add(model, reference, clock.step, (args, kwargs))
        self._fits = call.args is not None and call.size <= CAP // MUCH_LARGER

    def ended(self) -> None:
        """The call has returned: has it drawn random numbers?"""
        call = self.last
        if call is not None:
            self._calm = 0 if has_drawn(call) else self._calm + 1

    def mode_changed(self) -> None:
        """The model is in another mode: it may draw random numbers now."""
        self._calm = 0

    def let_go(self) -> None:
        """Nothing is held any more, from now on."""
        self._ring = self._last = None
        self.plain = PlainCall()
