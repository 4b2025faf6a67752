"""The optimizers that hold parameters of the watched models: what they hold, and what they change.

Which of them have had their turn in a step is the clock's affair (`clock/turns.py`). Here weights
are read before a step, gradients as it will use them, and what it has added after it.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import nn

from nethook.hooks.process.optimizers import holds, optimizers_holding
from nethook.runs import names
from nethook.torch_private import version_of
from nethook.watching import budget
from nethook.watching.clock.clock import PATIENCE
from nethook.watching.flight.recorder import Flight
from nethook.watching.journal import Journal
from nethook.watching.loop.hand_steps import HandSteps
from nethook.watching.loop.held_parameters import HeldParameters
from nethook.watching.loop.rebinding import Resolver
from nethook.watching.loop.track import Track, is_there
from nethook.watching.loop.wiped_passes import WipedPasses
from nethook.watching.measuring.loop_numbers import LoopNumbers
from nethook.watching.measuring.parameter_facts import ParameterFacts
from nethook.watching.measuring.parameters import (
    ParametersChangedError,
    ParameterSet,
    tell_norms,
)

_now = time.perf_counter


class Optimizers:
    """All optimizers that hold parameters of the watched models.

    Arguments:
        journal: where numbers go.
        numbers: of the loop.
        flight: told of gradients that are not finite.
        facts: of every parameter of the models.
        given: those that are known from the start; with none they are looked for.
        resolver: knows which tensors the parameters are now.
    """

    def __init__(
        self,
        journal: Journal,
        numbers: LoopNumbers,
        flight: Flight,
        facts: Sequence[ParameterFacts],
        given: Sequence[torch.optim.Optimizer],
        resolver: Resolver,
    ) -> None:
        self._journal = journal
        self._numbers = numbers
        self._resolver = resolver
        self.tracks: dict[int, Track] = {}
        self.held = HeldParameters(journal, flight, facts, self.tracks)
        """The parameters of the models, by who holds them."""
        self.by_hand = HandSteps(journal, numbers, self.held)
        # Optimizers that hold nothing of the models, with their steps.
        self._strangers: weakref.WeakKeyDictionary[torch.optim.Optimizer, int] = (
            weakref.WeakKeyDictionary()
        )
        self.changes = 0
        """How often an optimizer came, or parameters of the models became other tensors."""
        self.wiped_passes = WipedPasses(journal, self.tracks)
        self._looked = bool(given)
        for optimizer in given:
            self._add(optimizer)

    def by_name(self) -> dict[str, torch.optim.Optimizer]:
        """The optimizers that were seen and are still there."""
        named = ((track.name, track.ref()) for track in self.tracks.values())
        return {name: optimizer for name, optimizer in named if optimizer is not None}

    def stranger_steps(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer is about to step that holds nothing of the models."""
        self._strangers[optimizer] = self._strangers.get(optimizer, 0) + 1

    def steps_of_all(self) -> list[tuple[torch.optim.Optimizer, int]]:
        """Every optimizer that was seen and is still there, with its steps so far."""
        counts = self._journal.clock.turns.counts
        own = ((track.ref(), counts.get(key, 0)) for key, track in self.tracks.items())
        known = [(optimizer, steps) for optimizer, steps in own if optimizer is not None]
        return [*known, *self._strangers.items()]

    def steps_of(self, reference: weakref.ref[torch.optim.Optimizer]) -> int | None:
        """The steps of an optimizer, also of one that is gone by now; None where it is not known.

        Of an object that is alive all plain weak references are one object, and stay that one.
        """
        counts = self._journal.clock.turns.counts
        for key, track in self.tracks.items():
            if track.ref is reference:
                return counts.get(key, 0)
        optimizer = reference()
        return None if optimizer is None else self._strangers.get(optimizer)

    def patience(self) -> int:
        """How many backward passes to wait for a step."""
        self.find()
        return PATIENCE if self.tracks else 1

    def find(self) -> None:
        """Looks for optimizers that hold the parameters, once."""
        if self._looked:
            return
        self._looked = True
        tensors = [*self._resolver.find().values(), *(facts.parameter for facts in self.held.all)]
        for optimizer in optimizers_holding(tensors):
            self.track_of(optimizer)

    def track_of(self, optimizer: torch.optim.Optimizer, *, steps: bool = False) -> Track | None:
        """The track of an optimizer; None where it holds no parameter of ours.

        Of one that shares its groups with another it is the other's, unless it is the one that
        `steps`.
        """
        key = id(optimizer)
        track = self.tracks.get(key)
        if track is not None and track.ref() is optimizer:
            return track
        if optimizer in self._strangers:
            return None
        if not self._found_anew(optimizer) and not holds(optimizer, self.held.facts):
            self._strangers[optimizer] = 0
            self.changes += 1
            return None
        return self._add(optimizer, steps=steps)

    def _found_anew(self, optimizer: torch.optim.Optimizer) -> bool:
        """Whether an optimizer holds what the models have now, in the place of what they had."""
        if not self._resolver.changed():
            return False
        held = {id(tensor) for group in optimizer.param_groups for tensor in group["params"]}
        if not self._resolver.update(held):
            return False
        self._renew()
        return True

    def _renew(self) -> None:
        """Parameters are other tensors now: everything that is known of tensors is made anew."""
        self.changes += 1
        self.held.renew()
        self._strangers.clear()
        for track in self.tracks.values():
            track.sizes = []
            track.used = []
        gone = [key for key, track in self.tracks.items() if track.ref() is None]
        for key in gone:
            del self.tracks[key]
            self._journal.clock.turns.leave(key)

    def _look_for_changes(self) -> None:
        """Now and then: whether the models still have what the optimizers hold."""
        if not self._resolver.changed():
            return
        self.changes += 1
        groups = [
            group for optimizer in self.by_name().values() for group in optimizer.param_groups
        ]
        if self._resolver.look({id(tensor) for group in groups for tensor in group["params"]}):
            self._renew()

    def _add(self, optimizer: torch.optim.Optimizer, *, steps: bool = False) -> Track:
        name, key = str(len(self.tracks)), self._same(optimizer)
        if key is not None and not steps:
            return self.tracks[key]
        turns = self._journal.clock.turns
        if key is not None and not turns.counts.get(key):  # it was the coat
            name = self.tracks.pop(key).name
            turns.leave(key)
        self.changes += 1
        track = Track(name, optimizer)
        self.tracks[id(optimizer)] = track
        turns.join(id(optimizer))
        types = {other.name: other.type for other in self.tracks.values()}
        self._journal.writer.info(optimizers=types)
        return track

    def _same(self, optimizer: torch.optim.Optimizer) -> int | None:
        """The key of an optimizer that is this one in another coat, or has it as its coat.

        Lightning and Accelerate put an object around an optimizer that is an optimizer as well, has
        the very same groups, and hands its steps on. If both were waited for, no step would end.
        """
        groups = optimizer.param_groups
        for key, track in self.tracks.items():
            other = track.ref()
            if other is not None and other.param_groups is groups:
                return key
        return None

    def concerns(self, holder: object) -> bool:
        """Whether an optimizer, or a module, has to do with parameters of the watched models."""
        track = self.tracks.get(id(holder))
        if track is not None and track.ref() is holder:
            return True
        if isinstance(holder, torch.optim.Optimizer):
            return self.track_of(holder) is not None
        first = next(holder.parameters(), None) if isinstance(holder, nn.Module) else None
        return first is not None and id(first) in self.held.facts

    def gone(self) -> list[int]:
        """The keys of optimizers that are not there any more."""
        if len(self.tracks) == 1:
            return []  # the one that asks is there
        return [key for key, track in self.tracks.items() if track.ref() is None]

    # -- one step -----------------------------------------------------------------------------

    def step_begins(self, track: Track, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer is about to step: its weights are read."""
        # Where nothing is due, a parameter that joins a group may wait for a step that looks.
        schedule, groups = self._journal.schedule, len(optimizer.param_groups)
        if not schedule.quiet or groups != len(track.sizes) or track.set is None:
            self.held.arrange(track, optimizer)
        track.note_weights()
        if schedule.params:
            self._measured(track, ParameterSet.weights)

    def read(self, track: Track, optimizer: torch.optim.Optimizer) -> bool | None:
        """Reads the gradients as they are now, which the optimizer uses next.

        Whether a loss scaler leaves the step out; None where only a device knows.
        """
        track.reading = False
        if self.wiped_passes.looks:
            self.wiped_passes.step_begins()
        schedule = self._journal.schedule
        found_inf = getattr(optimizer, "found_inf", None)
        skipped: bool | None = False
        if found_inf is not None and isinstance(found_inf, torch.Tensor):
            skipped = bool(found_inf.item()) if found_inf.device.type == "cpu" else None
            if skipped:
                self._numbers.count(names.SKIPPED_STEPS)
        if schedule.looks:
            factor = _factor_of(optimizer)
            self._measured(track, ParameterSet.gradients, factor, schedule.param_grads)
        elif track.set is not None:
            seems_odd = track.set.seems_odd  # Python calls it more quickly than as a method
            if seems_odd(self._journal.clock.step):
                track.set.flag_odd()
        return skipped

    def step_ends(self, track: Track, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer has changed its weights: that is read. It may be done twice."""
        journal = self._journal
        schedule = journal.schedule
        if not schedule.quiet and track.set is not None:
            if schedule.params:
                self._measured(track, ParameterSet.updates)
            if schedule.looks and journal.options.wants_params:
                self._measured(track, ParameterSet.look, journal.clock.step)
            if schedule.samples:
                track.set.second_moments(optimizer)
                track.note_versions()
        if track.mixed:
            track.mixed = False
            self._numbers.count(names.OLD_GRADIENTS)
        if schedule.quiet and journal.clock.gradients.cleared and len(self.tracks) == 1:
            track.used = None
        else:
            self.note_used(track)
        if schedule.samples or track.rates_changed(optimizer.param_groups):
            track.note_rates(journal, self._numbers.pending, optimizer)

    def end_step(self) -> None:
        """Every optimizer has had its turn."""
        schedule = self._journal.schedule
        if schedule.looks:
            self._tell_norms()
        self.held.measure_loose()
        if schedule.samples:
            self._look_for_changes()

    def _tell_norms(self) -> None:
        """Norms over all optimizers that have had their turn."""
        taken = self._journal.clock.turns.taken
        tracks = [track for key, track in self.tracks.items() if key in taken]
        tell_norms(self._numbers, [track.set for track in tracks if track.set is not None])

    def _measured(self, track: Track, method: Callable[..., None], *args: Any) -> None:
        """Calls a method of the track's set; makes the set anew where parameters have changed."""
        spent = self._journal.schedule.spent
        start = _now()
        quantity = budget.PARAM_GRADS if method is ParameterSet.gradients else budget.PARAMS
        try:
            if track.set is not None:
                method(track.set, *args)
        except ParametersChangedError:
            optimizer = track.ref()
            if optimizer is not None:
                track.sizes = []
                self.held.arrange(track, optimizer)
                if method in (ParameterSet.weights, ParameterSet.gradients):
                    method(track.set, *args)
        took = _now() - start
        spent[quantity] += took
        spent[budget.OTHER] -= took  # the hook around it counts everything as other

    def unclipped(self, factor: float) -> None:
        """Reads the gradients of all optimizers before they are clipped."""
        for track in self.tracks.values():
            optimizer = track.ref()
            if optimizer is not None:
                self.held.arrange(track, optimizer)
            try:
                if track.set is not None:
                    track.set.unclipped(factor)
            except ParametersChangedError:
                track.sizes = []

    # -- old gradients ------------------------------------------------------------------------

    def note_used(self, track: Track) -> None:
        """Notes which gradients a step has used, to know them again."""
        used: list[tuple[torch.Tensor, int, int]] = []
        for parameter in () if track.set is None else track.set.probes:
            grad = parameter.grad
            if grad is not None:
                used.append((parameter, id(grad), version_of(grad)))
        track.used = used

    def backward_begins(self, first: bool, tracks: Iterable[Track] | None = None) -> None:
        """Notes whose gradients a pass adds to that a step has used already.

        That is no fault yet: a generator's pass adds to the gradients of its discriminator, which
        are cleared before they are used. It is one when the next step finds them so.
        """
        for track in self.tracks.values() if tracks is None else tracks:
            if first or track.mixed:
                mixed, track.mixed = track.mixed, False
                if track.used is None:  # whatever is there now was there at the last step
                    self.note_used(track)
                for parameter, key, version in track.used or ():
                    grad = parameter.grad
                    same = grad is not None and id(grad) == key and version_of(grad) == version
                    if grad is not None and (mixed or same):
                        track.mixed = track.mixed or is_there(grad)


def _factor_of(optimizer: torch.optim.Optimizer) -> float:
    """What the optimizer itself multiplies gradients with: a fused one unscales them."""
    scale = getattr(optimizer, "grad_scale", None)
    if isinstance(scale, torch.Tensor) and scale.device.type == "cpu":
        return 1.0 / scale.item()
    return 1.0
