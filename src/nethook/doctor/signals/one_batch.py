"""Whether one batch alone can be learnt: what copies that were trained on it have shown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from nethook.doctor.finding import Evidence
from nethook.doctor.history import Examined, History
from nethook.doctor.signals.examined import number, text
from nethook.text.numbers import ascii_number

EXAMINED: Final = "it can learn at all"
# Besides the learning rates, which nearly all who ask read as well.
ONE_BATCH_READS: Final = (
    "examined.it can learn at all",
    *(
        f"examined.it can learn at all.{name}"
        for name in ("adam", "adam_rate", "after", "before", "optimizer", "rate", "steps")
    ),
)
LEARNS: Final = 0.1
"""Fall of the loss, by its start, that shows that one batch is being learnt."""
STILL: Final = 0.01
"""And what is none."""


@dataclass(frozen=True, slots=True)
class OneBatch:
    """How the loss of one batch went, with the script's optimizer and with Adam.

    A loss that was no longer finite is infinite here.
    """

    steps: int
    before: float
    after: float
    optimizer: str
    rate: float
    adam: float
    adam_rate: float

    @property
    def own_learns(self) -> bool:
        """The script's settings lower it."""
        return self._fall(self.after) >= LEARNS

    @property
    def own_fails(self) -> bool:
        """The script's settings do not lower it."""
        return self._fall(self.after) < STILL

    @property
    def adam_learns(self) -> bool:
        """Adam lowers it."""
        return self._fall(self.adam) >= LEARNS

    @property
    def adam_fails(self) -> bool:
        """Nor does Adam."""
        return self._fall(self.adam) < STILL

    def _fall(self, after: float) -> float:
        return (self.before - after) / max(abs(self.before), 1e-12)

    @property
    def words(self) -> str:
        """A sentence with the numbers."""
        return (
            f"Trained on one batch alone, a copy goes from {ascii_number(self.before)} to "
            f"{_shown(self.after)} in {self.steps} steps of {self.optimizer} "
            f"(lr={ascii_number(self.rate)}), and to {_shown(self.adam)} with Adam "
            f"(lr={ascii_number(self.adam_rate)})."
        )

    @property
    def evidence(self) -> dict[str, Evidence]:
        """The losses that are finite."""
        own = f"{self.optimizer} (lr={ascii_number(self.rate)})"
        found = {
            "loss of one batch": self.before,
            f"after {self.steps} steps with {own}": self.after,
            f"after as many with Adam (lr={ascii_number(self.adam_rate)})": self.adam,
        }
        return {name: Evidence(loss) for name, loss in found.items() if math.isfinite(loss)}


def one_batch(history: History) -> OneBatch | None:
    """What was tried; None where nothing was, or of several losses, or at a rate still warming."""
    tried = [one for one in history.examined(EXAMINED) if one.outcome == "fine"]
    if len(tried) != 1:
        return None
    (result,) = tried
    steps, before = number(result, "steps"), number(result, "before")
    rate = number(result, "rate")
    if not (math.isfinite(steps) and math.isfinite(before)):
        return None
    if rate < 0.5 * history.largest_rate():
        return None
    return OneBatch(
        int(steps), before, _loss(result, "after"), text(result, "optimizer"), rate,
        _loss(result, "adam"), number(result, "adam_rate"),
    )  # fmt: skip


def _loss(result: Examined, name: str) -> float:
    return number(result, name, math.inf)


def _shown(loss: float) -> str:
    return ascii_number(loss) if math.isfinite(loss) else "no finite number"
