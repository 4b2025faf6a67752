"""The parameters of one optimizer: weights, gradients and true updates, measured in a few calls.

Before a step one pass reads the weights and copies them, and one reads the gradients; after it one
pass reads what was added. Tensors that lie in one piece of CPU memory go through the native kernel
together; all others, one by one, through slots, and stay on their device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import torch

from nethook.runs import names
from nethook.stats.native import readable
from nethook.stats.sampling import sampled
from nethook.stats.shards import local_part
from nethook.stats.tables import SAMPLE
from nethook.watching.journal import Flags, Journal
from nethook.watching.measuring.device_parameters import Away, device_norms
from nethook.watching.measuring.loop_numbers import LoopNumbers
from nethook.watching.measuring.parameter_facts import ParameterFacts
from nethook.watching.measuring.parameter_numbers.flat_cosines import FlatCosines
from nethook.watching.measuring.parameter_numbers.flat_gradients import FlatGradients
from nethook.watching.measuring.parameter_numbers.flat_parameters import (
    FlatParameters,
    ParametersChangedError,
)
from nethook.watching.measuring.parameter_numbers.flat_weights import FlatWeights
from nethook.watching.measuring.parameter_numbers.one_by_one import OneByOne
from nethook.watching.measuring.parameter_numbers.parameter_slots import ParameterSlots
from nethook.watching.measuring.witnesses import Witnesses

__all__ = ["ParameterSet", "ParametersChangedError"]  # who calls the one has to catch the other

PROBES: Final = 3
"""Parameters of an optimizer whose gradient is known again when a backward pass begins."""


class ParameterSet:
    """Some parameters, and where their numbers go.

    `weights`, `updates` and `look` raise `ParametersChangedError` where a parameter is not the
    tensor any more that it was: the set is made anew then.

    Arguments:
        journal: where their numbers go.
        flags: who is told of NaN.
        parameters: facts of each, in order.
    """

    def __init__(
        self, journal: Journal, flags: Flags, parameters: Sequence[ParameterFacts]
    ) -> None:
        self.all = list(parameters)
        for facts in self.all:
            facts.settle()
        # The last ones as well: where the first layers are dead, only these have gradients.
        last, some = len(self.all) - 1, min(PROBES, len(self.all))
        places = sorted({round(place * last / max(1, some - 1)) for place in range(some)})
        self.probes = [self.all[place].parameter for place in places]
        self.plain = all(type(facts.parameter) is torch.nn.Parameter for facts in self.all)
        self.witnesses = Witnesses([facts.local for facts in self.all])
        self._slots = ParameterSlots(journal)
        self._flat = FlatParameters(journal, self.all)
        self._weights = FlatWeights(self._flat, journal.options)
        self._gradients = FlatGradients(self._flat, self._slots, flags)
        self._cosines = FlatCosines(self._flat, journal)
        flat = {id(facts) for facts in self._flat.facts}
        others = [facts for facts in self.all if id(facts) not in flat]
        self._others = OneByOne(journal, self._slots, others)
        self.grad_square = self.weight_square = self.update_square = float("nan")
        self.empty = 0.0
        # Here as well, since a step that measures nothing asks it and nothing else.
        self.seems_odd = self._gradients.seems_odd

    @property
    def flat(self) -> list[ParameterFacts]:
        """Those that lie in one piece of CPU memory."""
        return self._flat.facts

    @property
    def away(self) -> list[Away]:
        """Those that lie on devices, device by device."""
        return self._others.away

    # -- before the step ----------------------------------------------------------------------

    def weights(self) -> None:
        """Reads the weights, and keeps what is needed to tell the update."""
        self.weight_square = self._weights.read()
        self.weight_square = self._others.weights(self.weight_square)

    def gradients(self, factor: float, measure: bool) -> None:
        """Reads the gradients as the optimizer will use them, or only looks for NaN in them."""
        flat = self._gradients
        loose = flat.find(factor, measure)  # squares of gradients that do not lie flat
        loose = self._others.gradients(factor, measure, loose)
        if measure:
            odd, square = flat.fold(factor)
            self.grad_square = square + loose
        else:
            odd = flat.look()
        self.empty = (flat.empty + self._others.missing) / max(1, len(self.all))
        if odd:
            flat.flag_odd()

    def flag_odd(self) -> None:
        """A gradient seems not to be finite (`seems_odd`), in a step that measures nothing."""
        self._gradients.find_odd()

    def forget_squares(self) -> None:
        """The norms of a step were told."""
        self.grad_square = self.weight_square = self.update_square = math.nan

    def unclipped(self, factor: float) -> None:
        """Reads the gradients before they are clipped."""
        self._gradients.unclipped(factor)
        self._others.unclipped(factor)

    # -- after the step -----------------------------------------------------------------------

    def updates(self) -> None:
        """Reads what the step has added, if the weights were read before it."""
        if not self._weights.copied:
            return
        self._cosines.lie_at(self._weights.find())  # `look` comes next
        square = self._weights.updates()
        if square is not None and self._others.copied:
            self.update_square = square
        self.update_square = self._others.updates(self.update_square)

    def look(self, step: int) -> None:
        """Follows the sample of coordinates: cosines of this update with the one before."""
        following = self._cosines.find(step)
        self._others.look(step, following)
        self._cosines.look(step)

    def second_moments(self, optimizer: torch.optim.Optimizer) -> None:
        """Reads what Adam and its like keep of the squared gradient, at the sample."""
        for facts in self.all:
            state = optimizer.state.get(facts.parameter)
            moment = state.get("exp_avg_sq") if isinstance(state, dict) else None
            moment = local_part(moment) if isinstance(moment, torch.Tensor) else None
            if moment is not None and moment.numel() and readable.is_readable(moment):
                self._slots.of(facts, names.SECOND_MOMENT).fold(sampled(moment.detach(), SAMPLE))

    # -- what is known ------------------------------------------------------------------------

    def settle(self) -> None:
        """Brings the facts of each parameter up to date."""
        self._weights.settle()
        self._gradients.settle()

    @property
    def turns(self) -> int:
        """Steps that it takes until every update was measured."""
        return self._weights.turns

    @property
    def memory(self) -> int:
        """Bytes of the copies of weights."""
        return self._weights.memory + self._others.memory


def tell_norms(numbers: LoopNumbers, sets: Sequence[ParameterSet]) -> None:
    """Tells the norms of a step, over all sets that had a part in it."""
    grads = math.fsum(parameters.grad_square for parameters in sets)
    weights = math.fsum(parameters.weight_square for parameters in sets)
    updates = math.fsum(parameters.update_square for parameters in sets)
    away = [on_device for parameters in sets for on_device in parameters.away]
    if away:
        numbers.later(device_norms(away, grads, weights, updates))
    elif sets:
        numbers.set(names.GRAD_NORM, math.sqrt(grads) if grads >= 0 else math.nan)
        if weights > 0 and updates >= 0:
            numbers.set(names.UPDATE_RATIO, math.sqrt(updates / weights))
    if sets:
        empty = sum(parameters.empty * len(parameters.all) for parameters in sets)
        count = sum(len(parameters.all) for parameters in sets)
        numbers.set(names.EMPTY_GRADIENTS, empty / max(1, count))
    for parameters in sets:
        parameters.forget_squares()
