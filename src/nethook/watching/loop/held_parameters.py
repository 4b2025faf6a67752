"""The parameters that optimizers hold, a set for each, and those that none of them holds."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from nethook.runs import names
from nethook.watching.flight.recorder import Flight
from nethook.watching.journal import Journal
from nethook.watching.loop.track import Track
from nethook.watching.measuring.device_flags import DeviceFlags
from nethook.watching.measuring.parameter_facts import ParameterFacts
from nethook.watching.measuring.parameters import ParametersChangedError, ParameterSet


class HeldParameters:
    """Which parameters of the models are held by which optimizer; makes and keeps their sets.

    Arguments:
        journal, flight: of the watch.
        facts: all parameters of the models.
        tracks: of the optimizers by id, which may change.
    """

    def __init__(
        self,
        journal: Journal,
        flight: Flight,
        facts: Sequence[ParameterFacts],
        tracks: dict[int, Track],
    ) -> None:
        self._journal = journal
        self._flight = flight
        self._tracks = tracks
        self.all = list(facts)
        self.facts: dict[int, ParameterFacts] = {}
        """Those of each parameter, by the id of its tensor."""
        self.plain = False
        """Whether a step that measures nothing reads only plain tensors, which nobody notices."""
        self._loose: ParameterSet | None = None  # of those that no optimizer holds
        self.moved: ParameterSet | None = None
        """Those that are moved without an optimizer, once `by_hand` was asked for them."""
        self._sharded = False  # whether this rank holds parts of parameters only
        self.renew()

    def renew(self) -> None:
        """Parameters of the models are other tensors by now."""
        self.facts = {id(entry.parameter): entry for entry in self.all}

    def with_gradient(self) -> int:
        """How many parameters of the models have had a gradient at a step."""
        return sum(facts.with_grad > 0 for facts in self.all)

    def address_of(self, parameter: torch.Tensor) -> str | None:
        """The address of a parameter of the models; None where it is not known."""
        facts = self.facts.get(id(parameter))
        return facts.address if facts is not None and facts.parameter is parameter else None

    def arrange(self, track: Track, optimizer: torch.optim.Optimizer) -> None:
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
                facts = self.facts.get(id(parameter))
                if facts is not None:
                    facts.groups = [
                        membership for membership in facts.groups if membership[0] != track.name
                    ]
                    facts.groups.append((track.name, number))
                    members.append(facts)
        track.set = ParameterSet(self._journal, self._flight, members)
        sets = [other.set for other in self._tracks.values() if other.set is not None]
        self.plain = all(parameters.plain for parameters in sets)
        if not self._sharded and any(member.part.parts > 1 for member in members):
            self._sharded = True
            self._journal.writer.info(sharded=True)
        if self.moved is not None:  # so far
            self.moved.settle()
            self.moved = None
        held = {id(entry.parameter) for every in self._tracks.values() if every.set is not None
                for entry in every.set.all}  # fmt: skip
        loose = [entry for key, entry in self.facts.items() if key not in held]
        if self._loose is not None:
            self._loose.settle()
        self._loose = ParameterSet(self._journal, self._flight, loose) if loose else None
        if had_some:
            data = {"groups": {member.address: member.groups for member in members[:200]}}
            self._journal.event(
                names.PARAMETERS, f"optimizer {track.name} holds other parameters", data=data
            )

    def by_hand(self) -> ParameterSet | None:
        """Those that are trained, where no optimizer has been seen to hold any."""
        if self.moved is None and all(track.set is None for track in self._tracks.values()):
            trained = [facts for facts in self.all if facts.parameter.requires_grad]
            self.moved = ParameterSet(self._journal, self._flight, trained) if trained else None
        return self.moved

    def measure_loose(self) -> None:
        """Those that no optimizer holds: measured when a step ends."""
        journal = self._journal
        options, schedule = journal.options, journal.schedule
        if self._loose is None or not (schedule.budget.share is None or schedule.samples):
            return
        try:
            if options.wants_params:
                self._loose.updates()  # against what they were at the last look
                self._loose.weights()
            self._loose.gradients(1.0, "param_grads" in options.wanted)
        except ParametersChangedError:
            self._loose = ParameterSet(journal, self._flight, self._loose.all)

    def settle_later(self, device_flags: DeviceFlags) -> None:
        """Asks devices for what they know of parameters; it is told when it has come."""
        for parameters in self._sets():
            for away in parameters.away:
                moved = away.settle()
                if moved is not None:
                    device_flags.put(*moved)

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
        sets = (*(track.set for track in self._tracks.values()), self._loose, self.moved)
        return [parameters for parameters in sets if parameters is not None]
