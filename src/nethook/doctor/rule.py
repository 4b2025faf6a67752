"""What a rule is: a function that reads a history and reports what it finds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any

from nethook.doctor.finding import Finding
from nethook.doctor.history import History
from nethook.errors import OptionError


class Cause(IntEnum):
    """What explains what: a lower number is the cause of a higher one."""

    LOOP = 0  # the contract of the training loop
    LOSS = 1  # loss and target
    DATA = 2  # data and input
    START = 3  # the network as it starts
    SETTINGS = 4  # of the optimizer
    SYMPTOM = 5  # what all of these lead to
    REST = 6  # what is reported when nothing else explains a run


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """One code of the catalogue.

        RULE = Rule("missing-step", Cause.LOOP, look, reads=("series.@loop.backwards.mean", …))

    `look(history, thresholds)` yields findings; `thresholds` is an object with the numbers that
    `defaults` has, as the user may have changed them. `reads` are the fields that it may read, as
    `History.read` names them. The module's docstring says cause, evidence, fix, and when it is
    silent.
    """

    code: str
    cause: Cause
    look: Callable[[History, Any], Iterable[Finding]]
    reads: tuple[str, ...]
    defaults: Any = None  # a `NamedTuple` of numbers, or a dataclass

    @property
    def threshold_names(self) -> tuple[str, ...]:
        """The names of its thresholds."""
        if isinstance(self.defaults, tuple):
            names: tuple[str, ...] = self.defaults._fields  # type: ignore[attr-defined]
            return names
        fields = dataclasses.fields(self.defaults) if self.defaults else ()
        return tuple(field.name for field in fields)

    def thresholds(self, changed: Mapping[str, float]) -> Any:
        """The thresholds with what the user changed."""
        if not changed:
            return self.defaults
        known_names = self.threshold_names
        for name in changed:
            if name not in known_names:
                names = ", ".join(sorted(known_names)) or "none"
                raise OptionError(
                    f"`thresholds` must name thresholds of {self.code} ({names}); got {name!r}."
                )
        if isinstance(self.defaults, tuple):
            return self.defaults._replace(**changed)  # type: ignore[attr-defined]
        return dataclasses.replace(self.defaults, **changed)
