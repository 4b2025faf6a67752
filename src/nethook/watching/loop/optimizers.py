"""Steps of optimizers: the clock of a watch, and where parameters are measured.

A step ends when every optimizer that takes part in it has stepped, or when one steps again. Which
take part is known from the optimizers that hold the parameters, and learned from the steps.

    forward, backward, zero_grad, clip, ...: as often as the loop likes
        |
        v         begins             ends, complete                  the last one
    +--------+   ---------> +--------+  ----------> +------------+  ----------> +-----+
    |  open  |              | inside |              | had a turn |              | DUE |
    +--------+ <----------  +--------+              +------------+              +-----+
      ^  ^  ^     raised,                                 |   (1)                  | end_step
      |  |  |     weights as they were (2)                |                        v
      |  |  +---------------------------------------------+                  +-----------+
      |  |        others that take part have not stepped yet                 | UNDER_WAY |
      |  |                                                                   +-----------+
      |  +-----------------------------------------------------------------------+   |  ^
      |                   step + 1, `ending` = 0                                     +--+ (3)
      +-- GradScaler.step without a step inside it: `skipped`, then as after `ends`

`inside` is `Steps.inside` above 0 (2 and more: one optimizer is part of another, and only the
outermost counts), `had a turn` is `Track.stepped`, `DUE` and `UNDER_WAY` are `Session.ending`.

1. One that steps again ends the step before it begins the next: `_steps_again`.
2. Torch calls no hook after a step that raised. The next call of the loop finds `inside` set and
   nothing on the stack (`interrupted`): if weights have changed since `begins`, `complete` is made
   up for and the step counts; else it does not.
3. An interrupt in here leaves the rest to be done: the next call of the loop finds `ending` set and
   calls `end_step` again. That is why everything up to a block of plain assignments may be done
   twice, and why nothing is called inside such a block.

Until an optimizer has stepped, other clocks stand in (`Session.clock`): after `PATIENCE` backward
passes each backward pass is a step, and a run without any counts calls of the model at its end.
"""

from __future__ import annotations

import functools
import math
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from threading import get_ident
from typing import Any, Final

import torch

from nethook.hooks.modes import quiet
from nethook.hooks.process.optimizers import holds, optimizers_holding
from nethook.hooks.stack import steps_under_way
from nethook.runs import names
from nethook.torch_private import version_of
from nethook.watching import budget
from nethook.watching.loop.needs import ClockSession
from nethook.watching.loop.track import Track, closure_of, is_there, with_closure
from nethook.watching.measuring.device_parameters import device_norms
from nethook.watching.measuring.loop_numbers import STEPS_AT
from nethook.watching.measuring.parameter_facts import ParameterFacts
from nethook.watching.measuring.parameters import (
    ParametersChangedError,
    ParameterSet,
)
from nethook.watching.measuring.rebinding import Resolver
from nethook.watching.protocols import DUE, UNDER_WAY

_now = time.perf_counter

PATIENCE: Final = 32
"""Backward passes without a step of an optimizer after which each counts as a step; accumulation
may be this long before the first step."""


class Steps:
    """All optimizers that hold parameters of the watched models."""

    def __init__(
        self,
        session: ClockSession,
        facts: Sequence[ParameterFacts],
        given: Sequence[torch.optim.Optimizer],
        resolver: Resolver,
    ) -> None:
        self._session = session
        self._resolver = resolver
        self._all = list(facts)
        self._facts = {id(entry.parameter): entry for entry in facts}
        self.wanted = set(self._facts)  # ids of the parameters
        self.tracks: dict[int, Track] = {}
        self._strangers: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self._looked = bool(given)
        self._expected: set[int] = set()
        self.inside = 0  # steps under way, one inside the other
        self.begun: Track | None = None  # whose step is under way, the outermost
        self.thread = 0  # in which it is
        self._cut_short: set[int] = set()  # those that had stepped in the last step ended by force
        # Whether a step that measures nothing reads only plain tensors, which nobody notices.
        self.plain = False
        self.loose: ParameterSet | None = None
        for optimizer in given:
            self._add(optimizer)
        session.optimizers = self.by_name  # type: ignore[method-assign]
        session.patience = self._patience  # type: ignore[method-assign]
        session.snapshot_turns = lambda: self.turns  # type: ignore[method-assign]

    def by_name(self) -> dict[str, torch.optim.Optimizer]:
        """The optimizers that were seen and are still there."""
        named = ((track.name, track.ref()) for track in self.tracks.values())
        return {name: optimizer for name, optimizer in named if optimizer is not None}

    def _patience(self) -> int:
        """How many backward passes to wait for a step."""
        self.find()
        return PATIENCE if self.tracks else 1

    def find(self) -> None:
        """Looks for optimizers that hold the parameters, once."""
        if self._looked:
            return
        self._looked = True
        tensors = [*self._resolver.find().values(), *(facts.parameter for facts in self._all)]
        for optimizer in optimizers_holding(tensors):
            self.track_of(optimizer)

    def track_of(self, optimizer: torch.optim.Optimizer) -> Track | None:
        """The track of an optimizer; None where it holds no parameter of ours."""
        key = id(optimizer)
        track = self.tracks.get(key)
        if track is not None and track.ref() is optimizer:
            return track
        if optimizer in self._strangers:
            return None
        if not self._found_anew(optimizer) and not holds(optimizer, self.wanted):
            self._strangers.add(optimizer)
            return None
        return self._add(optimizer)

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
        self._facts = {id(facts.parameter): facts for facts in self._all}
        self.wanted.clear()
        self.wanted.update(self._facts)
        self._strangers.clear()
        for track in self.tracks.values():
            track.sizes = []
            track.used = []
        gone = [key for key, track in self.tracks.items() if track.ref() is None]
        for key in gone:
            del self.tracks[key]
            self._expected.discard(key)

    def _look_for_changes(self) -> None:
        """Now and then: whether the models still have what the optimizers hold."""
        if not self._resolver.changed():
            return
        groups = [
            group for optimizer in self.by_name().values() for group in optimizer.param_groups
        ]
        if self._resolver.look({id(tensor) for group in groups for tensor in group["params"]}):
            self._renew()

    def _add(self, optimizer: torch.optim.Optimizer) -> Track:
        track = Track(str(len(self.tracks)), optimizer)
        self.tracks[id(optimizer)] = track
        self._expected.add(id(optimizer))
        types = {other.name: other.type for other in self.tracks.values()}
        self._session.writer.info(optimizers=types)
        return track

    # -- one step -----------------------------------------------------------------------------

    def begins(
        self, optimizer: torch.optim.Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """An optimizer is about to step; other arguments for it, or None."""
        session = self._session
        if self.inside or session.depth or session.ending:
            session.interruptions.look(step=True)
        self.inside += 1
        if self.inside > 1:
            return None  # an optimizer that is part of another
        self.thread = get_ident()
        track = self.track_of(optimizer)
        if track is None:
            return None
        if session.passes.open:
            session.passes.end()
        if session.clock != "optimizer":
            session.change_clock("optimizer")
        if track.stepped:
            self._steps_again()
        self._arrange(track, optimizer)
        track.note_weights()
        self.begun = track
        if session.on_params:
            self._measured(track, ParameterSet.weights)
        closure = closure_of(args, kwargs) if kwargs or len(args) > 1 else None
        if closure is None:
            self.read(track)
            return None
        track.reading = True
        return with_closure(args, kwargs, self._after_closure(track, closure))

    def _steps_again(self) -> None:
        """One steps for the second time: those that have not, do not take part in every step.

        Once may be an accident (an exception between two steps of a pair); twice in a row is how
        the loop is written.
        """
        stepped = {key for key, track in self.tracks.items() if track.stepped}
        if stepped == self._cut_short:
            self._expected = stepped
        self._cut_short = stepped
        self.end_step()

    def read(self, track: Track) -> None:
        """Reads the gradients as they are now: the optimizer uses them next."""
        session = self._session
        track.reading = False
        optimizer = track.ref()
        if optimizer is None:
            return
        scale = getattr(optimizer, "grad_scale", None)
        factor = 1.0
        if isinstance(scale, torch.Tensor) and scale.device.type == "cpu":
            factor = 1.0 / scale.item()
        found_inf = getattr(optimizer, "found_inf", None)
        skipped: bool | None = False
        if isinstance(found_inf, torch.Tensor):
            skipped = bool(found_inf.item()) if found_inf.device.type == "cpu" else None
        session.skipped = skipped
        if skipped:
            session.numbers.count(names.SKIPPED_STEPS)
        if session.looks:
            self._measured(track, ParameterSet.gradients, factor, session.on_param_grads)
        elif track.set is not None:
            track.set.probe(session.step)
        for told in session.on_gradients:
            told(track)
        session.flight.before_step(optimizer, skipped)

    def _after_closure(self, track: Track, closure: Callable[[], Any]) -> Callable[[], Any]:
        session = self._session

        @functools.wraps(closure)
        def seen(*args: Any, **kwargs: Any) -> Any:
            try:
                result = closure(*args, **kwargs)
            except BaseException as error:
                session.interruptions.error = type(error).__name__
                raise
            if track.reading and session.guard.alive:
                try:
                    with quiet():
                        self.read(track)
                except Exception as error:
                    session.guard.failed("the closure of a step", error, None)
            return result

        return seen

    def ends(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer has stepped."""
        if self.inside > 1:  # some of them may have raised
            self.inside = min(self.inside, steps_under_way() or 1)
        track = self.tracks.get(id(optimizer))
        if self.inside > 1 or track is None:
            self.inside = max(0, self.inside - 1)
        else:
            self.complete(track, optimizer)

    def complete(self, track: Track, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer has changed its weights: that is read, and it has had its turn.

        An interrupt may come in here. Up to the block of assignments all of it may be done again,
        and will be; after that the step counts, and will be ended.
        """
        session = self._session
        if track.set is not None:
            if session.on_params:
                self._measured(track, ParameterSet.updates)
            if session.wants_params and session.looks:
                self._measured(track, ParameterSet.look, session.step)
            if session.samples:
                track.set.second_moments(optimizer)
                track.note_versions()
        if track.mixed:
            track.mixed = False
            session.numbers.count(names.OLD_GRADIENTS)
        self.note_used(track)
        track.note_rates(session, optimizer)
        session.order.note("skipped-step" if session.skipped else "step")
        session.loop_stepped()
        over = self._is_last(track)
        numbers = session.numbers.values
        # Nothing is called from here on: Python raises interrupts where something is.
        numbers[STEPS_AT] += 1
        session.optimizer_steps += 1
        track.steps += 1
        track.stepped = True
        self.begun = track.before = None
        self.inside = 0
        if over:
            session.ending = DUE
            self.end_step()

    def skipped(self, optimizer: torch.optim.Optimizer) -> None:
        """A loss scaler has left a step out."""
        track = self.track_of(optimizer)
        if track is None:
            return
        session = self._session
        session.skipped = True
        session.numbers.count(names.SKIPPED_STEPS)
        session.order.note("skipped-step")
        session.note_event(names.STEP_SKIPPED, "a loss scaler found gradients that are not finite")
        self.stepped(track)

    def stepped(self, track: Track) -> None:
        """An optimizer has had its turn; the step ends with the last of them."""
        over = self._is_last(track)
        track.stepped = True
        if over:
            self._session.ending = DUE
            self.end_step()

    def _is_last(self, track: Track) -> bool:
        """Whether all others that take part in a step have had their turn."""
        if len(self.tracks) == 1:
            return True
        expected = [self.tracks[key] for key in self._expected if key in self.tracks]
        return all(other.stepped or other is track or other.ref() is None for other in expected)

    def end_step(self) -> None:
        """Every optimizer has had its turn."""
        session = self._session
        if session.ending != UNDER_WAY:  # else this is the rest, after an interrupt
            if session.looks:
                self._tell_norms()
            if self.loose is not None:
                self._measure_loose()
            if session.samples:
                self._look_for_changes()
        for track in self.tracks.values():
            track.stepped = False
        session.end_step()

    def _tell_norms(self) -> None:
        """Norms over all optimizers that have had their turn."""
        session = self._session
        tracks = [track for track in self.tracks.values() if track.stepped]
        sets = [track.set for track in tracks if track.set is not None]
        grads = math.fsum(parameters.grad_square for parameters in sets)
        weights = math.fsum(parameters.weight_square for parameters in sets)
        updates = math.fsum(parameters.update_square for parameters in sets)
        away = [on_device for parameters in sets for on_device in parameters.away]
        if away:
            session.numbers.later(device_norms(away, grads, weights, updates))
        elif sets:
            session.numbers.set(names.GRAD_NORM, math.sqrt(grads) if grads >= 0 else math.nan)
            if weights > 0 and updates >= 0:
                session.numbers.set(names.UPDATE_RATIO, math.sqrt(updates / weights))
        if sets:
            empty = sum(parameters.empty * len(parameters.all) for parameters in sets)
            count = sum(len(parameters.all) for parameters in sets)
            session.numbers.set(names.EMPTY_GRADIENTS, empty / max(1, count))
        for parameters in sets:
            parameters.grad_square = parameters.weight_square = parameters.update_square = math.nan

    def _measured(self, track: Track, method: Callable[..., None], *args: Any) -> None:
        """Calls a method of the track's set; makes the set anew where parameters have changed."""
        session = self._session
        start = _now()
        quantity = budget.PARAM_GRADS if method is ParameterSet.gradients else budget.PARAMS
        try:
            if track.set is not None:
                method(track.set, *args)
        except ParametersChangedError:
            optimizer = track.ref()
            if optimizer is not None:
                track.sizes = []
                self._arrange(track, optimizer)
                if method in (ParameterSet.weights, ParameterSet.gradients):
                    method(track.set, *args)
        took = _now() - start
        session.spent[quantity] += took
        session.spent[budget.OTHER] -= took  # the hook around it counts everything as other

    # -- what optimizers hold -----------------------------------------------------------------

    def _arrange(self, track: Track, optimizer: torch.optim.Optimizer) -> None:
        """Makes the set of an optimizer's parameters, when these have changed."""
        sizes = [len(group["params"]) for group in optimizer.param_groups]
        if sizes == track.sizes and track.set is not None:
            return
        had_some = bool(track.sizes)
        track.sizes = sizes
        if track.set is not None:
            track.set.settle()
        members = []
        for number, group in enumerate(optimizer.param_groups):
            for parameter in group["params"]:
                facts = self._facts.get(id(parameter))
                if facts is not None:
                    facts.groups = [
                        membership for membership in facts.groups if membership[0] != track.name
                    ]
                    facts.groups.append((track.name, number))
                    members.append(facts)
        track.set = ParameterSet(self._session, members)
        sets = [other.set for other in self.tracks.values() if other.set is not None]
        self.plain = all(parameters.plain for parameters in sets)
        if not self._session.sharded and any(member.part.parts > 1 for member in members):
            self._session.sharded = True
            self._session.writer.info(sharded=True)
        held = {id(entry.parameter) for every in self.tracks.values() if every.set is not None
                for entry in every.set.all}  # fmt: skip
        loose = [entry for key, entry in self._facts.items() if key not in held]
        if self.loose is not None:
            self.loose.settle()
        self.loose = ParameterSet(self._session, loose) if loose else None
        if had_some:
            data = {"groups": {member.address: member.groups for member in members[:200]}}
            self._session.event(
                names.PARAMETERS, f"optimizer {track.name} holds other parameters", data=data
            )

    def _measure_loose(self) -> None:
        """Parameters that no optimizer holds: measured when a step ends."""
        session = self._session
        if self.loose is None or not (session.budget.share is None or session.samples):
            return
        try:
            if session.wants_params:
                self.loose.updates()  # against what they were at the last look
                self.loose.weights()
            self.loose.gradients(1.0, "param_grads" in session.wanted)
        except ParametersChangedError:
            self.loose = ParameterSet(session, self.loose.all)

    def settle_later(self) -> None:
        """Asks devices for what they know of parameters; it is told when it has come."""
        for parameters in self._sets():
            for away in parameters.away:
                moved = away.settle()
                if moved is not None:
                    self._session.device_flags.put(*moved)

    def settle(self) -> None:
        """Brings the facts of all parameters up to date."""
        for parameters in self._sets():
            parameters.settle()

    @property
    def turns(self) -> int:
        """Steps that it takes until the update of every parameter was measured."""
        return max([parameters.turns for parameters in self._sets()], default=1)

    @property
    def memory(self) -> int:
        """Bytes of all snapshots."""
        return sum(parameters.memory for parameters in self._sets())

    def _sets(self) -> list[ParameterSet]:
        sets = (*(track.set for track in self.tracks.values()), self.loose)
        return [parameters for parameters in sets if parameters is not None]

    # -- old gradients ------------------------------------------------------------------------

    def note_used(self, track: Track) -> None:
        """Notes which gradients a step has used, to know them again."""
        track.used = [
            (parameter, id(grad), version_of(grad))
            for parameter in ([] if track.set is None else track.set.probes)
            if (grad := parameter.grad) is not None
        ]

    def backward_begins(self, first: bool, tracks: Iterable[Track] | None = None) -> None:
        """Notes whose gradients a pass adds to that a step has used already.

        That is no fault yet: a generator's pass adds to the gradients of its discriminator, which
        are cleared before they are used. It is one when the next step finds them so.
        """
        for track in self.tracks.values() if tracks is None else tracks:
            if first or track.mixed:
                mixed, track.mixed = track.mixed, False
                if track.used is None:
                    self.note_used(track)
                for parameter, key, version in track.used or ():
                    grad = parameter.grad
                    same = grad is not None and id(grad) == key and version_of(grad) == version
                    if grad is not None and (mixed or same):
                        track.mixed = track.mixed or is_there(grad)
