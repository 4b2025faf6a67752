"""Which losses of a run are shown, in which order, and as which numbers: one answer for all.

The terminal, the page, the report, figures and exports ask here, so that they say the same. What
the program logged itself under a usual name (`loss`, `val_loss`, …) comes first: that is the number
its author knows. Then come the losses that were seen, as their means over samples.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

import numpy as np

from nethook.runs.names import TRAINER
from nethook.runs.reading.losses.curve import LossCurve
from nethook.runs.reading.results import Floats, Integers, Scalar

LOGGED: Final = "logged by the program"
_OF_LINE: Final = re.compile(r"#\d+$")  # which of the losses of one line

_USUAL: Final = {
    "train": ("loss", "train_loss", "training_loss"),
    "eval": ("eval_loss", "val_loss", "valid_loss", "validation_loss", "test_loss"),
}


class ShownLoss(NamedTuple):
    """A loss as it is shown.

    `step`, `value`, `least` and `greatest` are its course; `first` and `last` its two ends.
    """

    name: str  # the line at which it is made, or the name it was logged under
    phase: str
    counted: str  # what the numbers are: `mean over samples`, `mean over batches`, or LOGGED
    first: float
    last: float
    step: Integers
    value: Floats
    least: Floats
    greatest: Floats
    alone: bool = False  # the only one of its line in its phase

    @property
    def label(self) -> str:
        """`loss`, or `evaluation loss`."""
        return "loss" if self.phase == "train" else "evaluation loss"

    @property
    def source(self) -> str:
        """Where it is from, and what its numbers are: `train.py:42, mean over samples`."""
        return f"{self.line if self.alone else self.name}, {self.counted}"

    @property
    def ends(self) -> tuple[float, ...]:
        """Its first and its last value; of one point the one."""
        return (self.last,) if len(self.step) == 1 else (self.first, self.last)

    @property
    def line(self) -> str:
        """`train.py:42`, also of the second loss that is made there (`train.py:42#1`)."""
        return _OF_LINE.sub("", self.name)

    @property
    def finite(self) -> bool:
        """Whether it has a value that is finite."""
        return bool(np.isfinite(self.value).any())


class HasLosses(Protocol):
    """A run, as far as its losses go."""

    @property
    def scalars(self) -> Mapping[str, Scalar]:
        """What was logged, by name."""

    def loss_curves(
        self, phase: str = "train", scalars: Mapping[str, Scalar] | None = None
    ) -> dict[str, LossCurve]:
        """Every loss of a phase, by name."""


def shown_losses(
    run: HasLosses, phase: str | None = None, scalars: Mapping[str, Scalar] | None = None
) -> list[ShownLoss]:
    """Every loss that is shown, those of training first.

    Arguments:
        run: which.
        phase: `train` or `eval`; None for both.
        scalars: those of the run, where they were read already.
    """
    read = run.scalars if scalars is None else scalars
    shown: list[ShownLoss] = []
    for each in ("train", "eval") if phase is None else (phase,):
        shown += [_logged(scalar, each) for scalar in logged_losses(read, each)]
        seen = [_seen(curve) for curve in run.loss_curves(each, read).values()]
        lines = Counter(loss.line for loss in seen)
        shown += [loss._replace(alone=lines[loss.line] == 1) for loss in seen]
    return shown


def losses_in_words(run: HasLosses) -> list[str]:
    """Of each phase the loss that stands first: `loss 2.3 → 0.1 (mean over samples)`."""
    shown: dict[str, str] = {}
    for loss in shown_losses(run):
        ends = " → ".join(f"{value:.4g}" for value in loss.ends)
        shown.setdefault(loss.phase, f"{loss.label} {ends} ({loss.counted})")
    return [*shown.values()]


def logged_losses(scalars: Mapping[str, Scalar], phase: str) -> list[Scalar]:
    """What the program logged under a usual name of a loss."""
    return [
        scalar
        for name, scalar in scalars.items()
        if len(scalar) and not isinstance(scalar, LossCurve) and phase_of(name) == phase
    ]


def phase_of(name: str) -> str | None:
    """The phase of a loss logged under a usual name: `val/loss`, `trainer/loss` as well."""
    own = name.removeprefix(TRAINER)
    plain = own.lower().replace("/", "_").replace("-", "_").replace(".", "_").replace(" ", "_")
    turned = "_".join(reversed(plain.split("_")))  # `loss/train`
    for phase, usual in _USUAL.items():
        if plain in usual or turned in usual:
            return phase
    return None


def _logged(scalar: Scalar, phase: str) -> ShownLoss:
    value = scalar.value
    return ShownLoss(
        scalar.name, phase, LOGGED, float(value[0]), float(value[-1]), scalar.step, value, value,
        value,
    )  # fmt: skip


def _seen(curve: LossCurve) -> ShownLoss:
    return ShownLoss(
        curve.loss, curve.phase, curve.shown_as, curve.first, curve.last, *curve.course()
    )
