"""Layers whose `training` is another than in the last pass of a phase: told when the step ends."""

from __future__ import annotations

from nethook.runs import names
from nethook.watching.journal import Journal
from nethook.watching.recorder import Recorder

_SHOWN = 100  # addresses that an event names


class Modes(Recorder):
    """Changes of mode in the step that is under way."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._changed: dict[str, dict[str, bool]] = {}  # phase -> address -> `training`
        self.model: bool | None = None
        """`training` of the model at its last call with gradients."""

    def changed(self, address: str, phase: str, mode: bool) -> None:
        """A module is in another mode than in the last pass of this phase."""
        self._changed.setdefault(phase, {})[address] = mode
        self._journal.eventful = True

    def model_called(self, mode: bool) -> bool:
        """A model is called with gradients; whether its mode is another than at the last call."""
        if mode is self.model:
            return False
        self.model = mode
        return True

    def end_step(self, step: int) -> None:
        """One event per phase, whatever the number of modules."""
        for phase, changed in self._changed.items():
            count, flags = len(changed), set(changed.values())
            what = f"training={flags.pop()}" if len(flags) == 1 else "another mode"
            noun = "module is" if count == 1 else "modules are"
            self._journal.event(
                names.MODE,
                f"{count} {noun} in {what} from here on (phase {phase})",
                next(iter(changed)) if count == 1 else "",
                {"phase": phase, "training": dict(list(changed.items())[:_SHOWN])},
            )
        self._changed.clear()
