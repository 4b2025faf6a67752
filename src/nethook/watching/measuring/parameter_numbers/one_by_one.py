"""Parameters that do not lie flat in CPU memory: measured one by one, by torch, where they are."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from nethook.runs.names import PARAM_GRADS, PARAMS, UNCLIPPED, UPDATE_COSINE, UPDATES
from nethook.stats.native import readable
from nethook.stats.repeats import stored_elements
from nethook.stats.sampling import both_parts, sampled
from nethook.stats.tables import SAMPLE
from nethook.watching.journal import Journal
from nethook.watching.measuring.device_parameters import Away, is_away
from nethook.watching.measuring.parameter_facts import ParameterFacts
from nethook.watching.measuring.parameter_numbers.parameter_slots import ParameterSlots


class OneByOne:
    """Parameters that do not lie flat.

    Sums of squares are handed through and added to in order, so that a total is the same number
    whoever measures which part of it.

    Arguments:
        journal: where totals go of those that lie on devices.
        slots: where all other numbers go.
        parameters: facts of each, in order.
    """

    def __init__(
        self, journal: Journal, slots: ParameterSlots, parameters: Sequence[ParameterFacts]
    ) -> None:
        self._slots = slots
        self._facts = list(parameters)
        self._wants_updates = "updates" in journal.options.wanted
        self._clones: dict[int, torch.Tensor] = {}  # weights from before the step
        self._followed: dict[int, tuple[torch.Tensor, torch.Tensor | None]] = {}
        self.away = _away(journal, self._facts)
        """Those that lie on devices, device by device."""

    def weights(self, square: float) -> float:
        """Reads the weights before a step; the sum of squares with theirs."""
        for index, facts in enumerate(self._facts):
            parameter = facts.local.detach()
            square += self._slots.measure(facts, PARAMS, parameter)
            if self._wants_updates and readable.kind(parameter) is None and not _repeats(parameter):
                self._clones[index] = parameter.clone()
        for away in self.away:
            away.weights()
        return square

    def gradients(self, factor: float, measure: bool, square: float) -> float:
        """Reads the gradients that a step will use, or only counts them; the sum of squares."""
        for facts in self._facts:
            facts.steps += 1
            grad = facts.grad
            if grad is not None:
                facts.with_grad += 1
                if measure:
                    square += self._slots.measure(facts, PARAM_GRADS, grad, factor)
        if measure:
            for away in self.away:
                away.gradients(factor)
        return square

    @property
    def missing(self) -> int:
        """Parameters without a gradient."""
        return sum(facts.parameter.grad is None for facts in self._facts)

    def unclipped(self, factor: float) -> None:
        """Reads the gradients before they are clipped."""
        for facts in self._facts:
            grad = facts.grad
            if grad is not None:
                self._slots.of(facts, UNCLIPPED).fold(grad, factor)

    @property
    def copied(self) -> bool:
        """Whether it is known of all what they were before the step."""
        return len(self._clones) == len(self._facts)

    def updates(self, square: float) -> float:
        """Reads what the step has added; the sum of squares with theirs."""
        changes: dict[torch.device, list[torch.Tensor]] = {}
        for index, facts in enumerate(self._facts):
            before = self._clones.pop(index, None)
            if before is not None:
                change = _wide(facts.local.detach()) - _wide(before)
                if is_away(change):
                    changes.setdefault(change.device, []).append(change)
                square += self._slots.measure(facts, UPDATES, change)
                if change.device.type == "cpu":
                    facts.moved[0] += bool(change.any())
                    facts.moved[1] += 1
        for away in self.away:
            away.updates(changes.get(away.device, ()))
        return square

    def look(self, step: int, following: bool) -> None:
        """Cosines of this update with the one before, from a sample of coordinates.

        Arguments:
            step: which one it is.
            following: whether the last look was in the step before it.
        """
        for index, facts in enumerate(self._facts):
            self._look_at(index, facts, following)
        for away in self.away:
            away.look(step)

    def _look_at(self, index: int, facts: ParameterFacts, following: bool) -> None:
        parameter = facts.local.detach()
        numbers = parameter.is_floating_point() or parameter.is_complex()
        if readable.kind(parameter) is not None or not numbers:
            return
        if is_away(parameter):  # `Away` does it, for all of its device at once
            return
        now = both_parts(sampled(parameter, SAMPLE).unsqueeze(1)).flatten().float()
        before, move = self._followed.get(index, (None, None)) if following else (None, None)
        moved = None if before is None or before.shape != now.shape else now - before
        self._followed[index] = (now.clone(), moved)
        if move is not None and moved is not None:
            sizes = move.norm() * moved.norm()
            cosine = (move * moved).sum() / sizes
            # Where one of them did not move there is none.
            self._slots.of(facts, UPDATE_COSINE).fold(cosine[sizes > 0])

    @property
    def memory(self) -> int:
        """Bytes of the copies."""
        return sum(clone.nbytes for clone in self._clones.values())


def _away(journal: Journal, parameters: Sequence[ParameterFacts]) -> list[Away]:
    devices: dict[torch.device, list[ParameterFacts]] = {}
    for facts in parameters:
        local = facts.local
        if is_away(local) and readable.kind(local) is None and not _repeats(local):
            devices.setdefault(facts.local.device, []).append(facts)
    return [Away(journal, facts) for facts in devices.values()]


def _wide(parameter: torch.Tensor) -> torch.Tensor:
    """A parameter in a type that has a difference: those of one byte do not."""
    return parameter.float() if parameter.dtype.itemsize == 1 else parameter


def _repeats(parameter: torch.Tensor) -> bool:
    """Whether it shows its memory more than once: no step can change it, and it may be huge."""
    return stored_elements(parameter) < parameter.numel()
