"""It can learn at all: a few steps on the kept batch alone lower its loss.

Experiment: two copies are trained on the kept batch, in turns and for as many steps: one with an
optimizer of the script's settings, begun anew, and one with Adam at a usual rate. Where that one
does not get far either, and time is left, a third has Adam at ten times the rate.

Meaning: numbers, and no fault by themselves: some losses cannot fall that fast. Beside a loss that
does not fall they show where to look: at the settings, at the network, or at the data.

Cost: two passes with gradients per step, at most 15 steps, and at most half of the time that is
left. It runs after all other experiments.

Does not apply: where the loss cannot be computed again on changed weights, where no optimizer holds
parameters of the model, and with optimizers that are not torch's, that call the model by themselves
(LBFGS) or whose rate is zero. Clipping, accumulation and schedules are not part of it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Final

import torch
from torch import nn

from nethook.examining.copying import model_bytes
from nethook.examining.experiment import OutOfTimeError, Result, fine
from nethook.examining.limits import Deadline, why_too_large
from nethook.examining.optimizing import OptimizerSettings, made_again, step_alone
from nethook.examining.passage import Passage
from nethook.examining.rehearsal import Rehearsal
from nethook.hooks.ops.mode_stack import alone
from nethook.restoring.randomness import random_states_unchanged

STEPS: Final = 15
LEAST: Final = 5
"""Steps below which nothing is said."""
RATES: Final = (1e-3, 1e-2)
"""Of Adam."""
FAR: Final = 0.1
"""Fall of the loss, by its start, from which on a higher rate is not tried."""
SHARE: Final = 0.5
"""Of the time that is left: the end of the run wants some, too."""
SCALED: Final = 256.0
"""The smallest factor by which a loss counts as scaled for half precision."""


class CanLearn:
    """See the module."""

    name = "it can learn at all"
    turn = 9

    def applies(self, rehearsal: Rehearsal) -> str | None:
        """None, or why not."""
        if not rehearsal.replayable or rehearsal.passage is None:
            return rehearsal.why_not or "the loss cannot be computed again"
        if rehearsal.passage.numbers_used:
            return rehearsal.passage.numbers_used
        loss = rehearsal.recorded.loss
        if (
            loss is None
            or loss.numel() != 1
            or loss.is_complex()
            or not bool(loss.isfinite().all())
        ):
            return "the loss is not one finite number"
        if not any(parameter.requires_grad for parameter in rehearsal.model.parameters()):
            return "it has no parameter that is trained"
        if not rehearsal.optimizers:
            return "no optimizer has parameters of it"
        if reasons := [settings.why_not for settings in rehearsal.optimizers if settings.why_not]:
            return reasons[0]
        if _is_scaled(rehearsal.passage):
            return "the loss is scaled for half precision"
        first = next(rehearsal.model.parameters())
        # Two copies, each with a gradient and two averages.
        return why_too_large(8 * model_bytes(rehearsal.model), first.device) or None

    def run(self, rehearsal: Rehearsal) -> Result:
        """Both in turns; then a higher rate."""
        deadline = rehearsal.deadline
        if deadline is not None:
            left = SHARE * deadline.left()
            deadline = Deadline(left, left)
        mine, usual = (_Training(rehearsal, deadline) for _ in range(2))
        mine.update = _Own(rehearsal.optimizers, mine.model)
        usual.update = _Adam(usual.trained, RATES[0])
        steps = _in_turns([mine, usual], STEPS, deadline)
        if steps < LEAST:
            raise OutOfTimeError("there was no time left for it")
        adam, rate = usual.losses[steps], RATES[0]
        if not _fall(usual.losses[0], adam) >= FAR:
            higher = _Training(rehearsal, deadline)
            higher.update = _Adam(higher.trained, RATES[1])
            if _in_turns([higher], steps, deadline) == steps and not higher.losses[steps] >= adam:
                adam, rate = higher.losses[steps], RATES[1]
        return fine(
            self,
            steps=steps,
            before=mine.losses[0],
            after=_stored(mine.losses[steps]),
            optimizer=" and ".join(settings.kind.__name__ for settings in rehearsal.optimizers),
            rate=max(settings.rate for settings in rehearsal.optimizers),
            adam=_stored(adam),
            adam_rate=rate,
        )


def _is_scaled(passage: Passage) -> bool:
    """Whether a factor of a `GradScaler` is in it: a single tensor, and a large power of two."""
    single = [
        float(constant.value)
        for constant in passage.constants
        if constant.value is not None and not constant.shape and constant.value.is_floating_point()
    ]
    return any(value >= SCALED and math.frexp(value)[0] == 0.5 for value in single)


def _fall(before: float, after: float) -> float:
    return (before - after) / max(abs(before), 1e-12)


def _stored(value: float) -> float | None:
    """As a file keeps it: None where it is not finite."""
    return value if math.isfinite(value) else None


class _Training:
    """A copy that is trained on the kept batch."""

    def __init__(self, rehearsal: Rehearsal, deadline: Deadline | None) -> None:
        self._rehearsal = rehearsal.twin()
        self._rehearsal.deadline = deadline
        self.model = self._rehearsal.model
        self.trained = [one for one in self.model.parameters() if one.requires_grad]
        self.losses: list[float] = []
        """Before each step, and after the last one."""
        self.update: Callable[[], object] = lambda: None

    def look(self) -> None:
        """Notes the loss and the gradients."""
        loss = self._rehearsal.run(grad=True).loss
        assert loss is not None
        self.losses.append(float(loss.detach()))
        with random_states_unchanged():  # what is computed again in a backward pass may draw
            found: Sequence[torch.Tensor | None] = torch.autograd.grad(
                loss, self.trained, allow_unused=True
            )
        for parameter, gradient in zip(self.trained, found, strict=True):
            parameter.grad = None if gradient is None else gradient.detach()


def _in_turns(copies: Sequence[_Training], steps: int, deadline: Deadline | None) -> int:
    """How many steps all of them have made, until the time was over."""
    took = 0.0
    try:
        for number in range(steps + 1):
            began = time.perf_counter()
            if deadline is not None and deadline.left() < took:
                return max(0, number - 1)
            for copy in copies:
                if number:
                    with alone():
                        copy.update()
                copy.look()
            took = time.perf_counter() - began
    except OutOfTimeError:
        return max(0, min(len(copy.losses) for copy in copies) - 1)
    return steps


class _Own:
    """The script's own optimizers, on a copy."""

    def __init__(self, settings: Sequence[OptimizerSettings], model: nn.Module) -> None:
        self._optimizers = [made_again(one, model) for one in settings]

    def __call__(self) -> None:
        """One step of each."""
        for optimizer in self._optimizers:
            step_alone(optimizer)


class _Adam:
    """Adam as published: torch's own would call the hooks that a script has put on its class."""

    def __init__(self, trained: Sequence[torch.Tensor], rate: float) -> None:
        self._trained = trained
        self._rate = rate
        self._steps = 0
        self._means = [torch.zeros_like(one) for one in trained]
        self._squares = [torch.zeros_like(one) for one in trained]

    @torch.no_grad()
    def __call__(self) -> None:
        """One step."""
        self._steps += 1
        one, two = 1 - 0.9**self._steps, 1 - 0.999**self._steps
        for parameter, mean, square in zip(self._trained, self._means, self._squares, strict=True):
            gradient: torch.Tensor | None = parameter.grad
            if gradient is None:
                continue
            if gradient.layout is not torch.strided:
                gradient = gradient.to_dense()
            mean.lerp_(gradient, 0.1)
            square.mul_(0.999).add_(gradient * gradient.conj(), alpha=0.001)
            parameter.sub_(self._rate / one * mean / ((square / two).sqrt() + 1e-8))
