"""The order of the loop's calls: an event at the first step, and whenever it changes."""

from __future__ import annotations

from nethook.runs import names
from nethook.runs.writing.writer import RunWriter

# What comes after a step belongs to it until one of these begins the next.
_BEGINS = frozenset({"zero_grad", "forward", "backward"})
_STEPS = frozenset({"step", "skipped-step"})


class CallOrder:
    """Collects the calls of a step."""

    def __init__(self, writer: RunWriter) -> None:
        self._writer = writer
        self.calls: list[str] = []
        self._done: list[str] = []  # steps that have ended, since the last event
        self._known: set[tuple[str, ...]] = set()
        self.before: list[str] = []
        """The calls of the step before."""
        self._last: tuple[str, ...] = ()
        self.ended = -1  # the step whose calls these are, once it has ended
        self.scaler = False

    def note(self, call: str) -> None:
        """A call of the loop."""
        calls = self.calls
        if self.ended >= 0 and call in _BEGINS:
            self._tell()
            calls = self.calls
        if not calls or calls[-1] != call:
            calls.append(call)

    def step_ended(self, step: int) -> None:
        """The step that these calls belong to has ended."""
        if self.ended < 0:
            self.ended = step

    def finish(self) -> None:
        """Watching ends."""
        if self.calls:
            self.ended = max(0, self.ended)
            self._tell()

    def _tell(self) -> None:
        step, self.ended = self.ended, -1
        if self.calls == self.before:  # as nearly always
            self.calls = []
            return
        self.before, self.calls = self.calls, []
        order = tuple(_shortened(self.before))
        if order == self._last:
            return
        self._last = order
        if order in self._known:
            return  # loops that take turns (every 8th batch is logged) are no news
        self._known.add(order)
        if len(self._known) <= 64:
            self._writer.event(
                names.ORDER,
                step,
                f"the order of calls: {', '.join(order)}",
                "",
                {"calls": list(order), "scaler": self.scaler},
            )


def _shortened(calls: list[str]) -> list[str]:
    """Pairs of calls that are repeated (micro-batches) stand once: forward, backward."""
    short: list[str] = []
    position = 0
    while position < len(calls):
        pair = calls[position : position + 2]
        while len(pair) == 2 and calls[position + 2 : position + 4] == pair:
            position += 2
        short.append(calls[position])
        position += 1
    return short
