"""The parameters of one optimizer: weights, gradients and true updates, measured in a few calls.

Before a step one pass reads the weights and copies them, and one reads the gradients; after it one
pass reads what was added. Tensors that lie in one piece of CPU memory go through the native kernel
together (`stats.flat`); all others, one by one, through slots, and stay on their device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import torch

from nethook.runs.names import (
    PARAM_GRADS,
    PARAMS,
    SECOND_MOMENT,
    UNCLIPPED,
    UPDATE_COSINE,
    UPDATES,
)
from nethook.stats.native import readable
from nethook.stats.repeats import stored_elements
from nethook.stats.rows import Slot
from nethook.stats.sampling import both_parts, sampled
from nethook.stats.shards import local_part
from nethook.stats.summary import summarise
from nethook.stats.tables import SAMPLE, Follower, Numbers, Table, lies_flat, start_of
from nethook.torch_private import local_of
from nethook.watching.journal import Flags, Journal
from nethook.watching.measuring.device_parameters import Away, is_away
from nethook.watching.measuring.parameter_facts import ParameterFacts
from nethook.watching.measuring.witnesses import Witnesses

PROBES: Final = 3
"""Parameters of an optimizer whose gradient is known again when a backward pass begins."""

PROBED: Final = 2
"""Of the first so many parameters, which the gradients of all later layers flow into, the smallest
that has a gradient is looked at for NaN in each step."""

MOST_LOOKED: Final = 1024
"""Elements of one gradient that are looked at for NaN in a step in which it is not measured."""


class ParameterSet:
    """Some parameters, and where their numbers go.

    Arguments:
        journal: where their numbers go.
        flags: who is told of NaN.
        parameters: facts of each, in order.
    """

    def __init__(
        self, journal: Journal, flags: Flags, parameters: Sequence[ParameterFacts]
    ) -> None:
        self._journal = journal
        self._flags = flags
        self.all = list(parameters)
        options = journal.options
        for facts in self.all:
            facts.settle()
        flat = [facts for facts in self.all if lies_flat(facts.local) and facts.local.numel()]
        self.flat = [facts for facts in flat if facts.local.is_contiguous()]
        flat_ids = {id(facts) for facts in self.flat}
        self.others = [facts for facts in self.all if id(facts) not in flat_ids]
        self._tensors = [facts.local for facts in self.flat]
        self._parameters = [facts.parameter for facts in self.flat]
        self.probes = [
            facts.parameter for facts in self.all[:: max(1, len(self.all) // PROBES)][:PROBES]
        ]
        first = range(len(self._parameters))[:PROBED]
        self._probed_lines = sorted(first, key=lambda index: self._parameters[index].numel())
        self._probed = [self._parameters[index] for index in self._probed_lines]
        self.plain = all(type(facts.parameter) is torch.nn.Parameter for facts in self.all)
        self.witnesses = Witnesses([facts.local for facts in self.all])
        self._bytes = [facts.local.nbytes for facts in self.flat]
        self._spread = [facts for facts in self.all if facts.held is not None]
        # Squares of a part count as many times as there are parts: see `runs.ranks`.
        self._parts = np.array([facts.part.parts for facts in self.flat], np.float64)
        count = len(self.flat)
        into = journal.train
        self._weights = Table(into, count)
        self._grads = Table(into, count)
        self._clip = Table(into, count)
        self._after = Table(into, count)
        self._follow = Table(into, count)
        for line, facts in enumerate(self.flat):
            info = facts.info(options.world)
            rows = [journal.row(facts.address, quantity, info) or 0 for quantity in _QUANTITIES]
            self._weights.set(line, rows[0], facts.local)
            self._grads.set(line, rows[1], facts.local)
            self._clip.set(line, rows[2], facts.local)
            self._after.set(line, rows[3], facts.local)
            self._follow.set(line, 0, facts.local)
        self.follower = Follower(self._follow)
        cosines = [
            journal.row(facts.address, UPDATE_COSINE, facts.info(options.world)) or 0
            for facts in self.flat
        ]
        self._cosines = Numbers(into, cosines)
        self._slots: dict[tuple[str, str], Slot] = {}
        self._snapshot = _Snapshot(self._bytes, options.snapshot_cap)
        self._clones: dict[int, torch.Tensor] = {}
        self._followed: dict[int, tuple[torch.Tensor, torch.Tensor | None]] = {}
        self._has_weights = False
        self._left_out = np.zeros(0, np.int64)  # lines whose update is not measured in this turn
        self._factor = 1.0
        self._wants_updates = "updates" in options.wanted
        self.grad_square = self.weight_square = self.update_square = float("nan")
        self.with_grad = np.zeros(count, np.int64)
        self.moved = np.zeros((2, count), np.int64)
        self._located = False  # whether it is known where the weights lie after this step
        self.looked = 0
        self._looked_at = -2
        self.empty = 0.0
        self._loose_square = 0.0  # of gradients that do not lie flat
        self.away = _away(journal, self.others)
        self.seems_odd = self._grads.prober(self._probed, self._probed_lines, MOST_LOOKED)
        """Whether a gradient is not finite, in so far as one can tell for all: `Table.prober`."""

    # -- before the step ----------------------------------------------------------------------

    def weights(self) -> None:
        """Reads the weights, and keeps what is needed to tell the update."""
        table = self._weights
        self._find(table)
        if self._wants_updates and self._snapshot.turn():
            table.lines["copy"] = self._snapshot.current
            self._after.lines["minus"] = self._snapshot.current
            self._left_out = np.flatnonzero(self._snapshot.current == 0)
        table.fold()
        self.weight_square = self._square_of(table)
        self._has_weights = True
        for index, facts in enumerate(self.others):
            parameter = facts.local.detach()
            self.weight_square += _square(parameter) * facts.part.parts
            self._slot(facts, PARAMS).fold(parameter)
            if self._wants_updates and readable.kind(parameter) is None and not _repeats(parameter):
                self._clones[index] = parameter.clone()
        for away in self.away:
            away.weights()

    def gradients(self, factor: float, measure: bool) -> None:
        """Reads the gradients as the optimizer will use them, or only looks for NaN in them."""
        self.looked += 1
        table = self._grads
        self._find_grads(table, PARAM_GRADS if measure else "", factor)
        empty = len(self.flat) - int(np.count_nonzero(table.address))
        if measure:
            if factor != self._factor:
                table.lines["factor"] = self._factor = factor
            odd = table.fold()
            self.grad_square = self._square_of(table) + self._loose_square
            empty += table.zeros
            for away in self.away:
                away.gradients(factor)
        else:
            odd = table.count_odd(MOST_LOOKED, self.looked)
        missing = sum(facts.parameter.grad is None for facts in self.others)
        self.empty = (empty + missing) / max(1, len(self.all))
        if odd:
            self._flag_odd()

    def flag_odd(self) -> None:
        """A gradient seems not to be finite (`seems_odd`) in a step that measures nothing."""
        table = self._grads
        self._ask_grads(table)
        table.count_odd()
        self._flag_odd()

    def _flag_odd(self) -> None:
        for line in np.flatnonzero(self._grads.odd).tolist():
            facts = self.flat[line]
            self._flags.flag(facts.address, PARAM_GRADS, None, None, facts.grad)

    def unclipped(self, factor: float) -> None:
        """Reads the gradients before they are clipped."""
        table = self._clip
        self._find_grads(table, UNCLIPPED, factor)
        table.lines["factor"] = factor
        table.fold()

    def _find_grads(self, table: Table, quantity: str, factor: float) -> None:
        """Where the gradients lie; those that do not lie flat are measured here."""
        self._loose_square = 0.0
        for line in self._ask_grads(table, counted=quantity != UNCLIPPED):
            facts = self.flat[line]
            grad = facts.grad
            if grad is not None and quantity:
                self._slot(facts, quantity).fold(grad, factor)
                self._loose_square += _square(grad, factor) * facts.part.parts
        for facts in self.others:
            grad = facts.grad
            facts.steps += quantity != UNCLIPPED
            if grad is not None:
                facts.with_grad += quantity != UNCLIPPED
                if quantity:
                    self._slot(facts, quantity).fold(grad, factor)
                    self._loose_square += _square(grad, factor) * facts.part.parts

    def _square_of(self, table: Table) -> float:
        """The squares of all lines; those of a part count once for each part there is."""
        return float(table.squares @ self._parts) if self._spread else table.square

    def _ask_grads(self, table: Table, counted: bool = False) -> list[int]:
        """Where the gradients lie that lie flat; the lines of all others that are there."""
        others = table.find_grads(self._parameters, self.with_grad.ctypes.data if counted else 0)
        left = []
        for line in others:
            facts = self.flat[line]
            # That of a sharded parameter is sharded, too; its part in this process may lie flat.
            grad = facts.grad if facts.held is not None else None
            if (
                grad is not None
                and lies_flat(grad)
                and grad.nbytes == self._bytes[line]
                and grad.dtype is facts.local.dtype
                and grad.is_contiguous()
            ):
                table.address[line] = start_of(grad)
                self.with_grad[line] += counted
            else:
                left.append(line)
        return left

    # -- after the step -----------------------------------------------------------------------

    def updates(self) -> None:
        """Reads what the step has added, if the weights were read before it."""
        if not self._has_weights or not self._wants_updates:
            return
        self._has_weights = False
        table = self._after
        self._find(table)
        self._follow.address[:] = table.address  # `look` comes next
        self._located = True
        if len(self._left_out):
            table.address[self._left_out] = 0
        table.fold(self.moved.ctypes.data)
        if not len(self._left_out) and len(self._clones) == len(self.others):
            self.update_square = self._square_of(table)
        changes: dict[torch.device, list[torch.Tensor]] = {}
        for index, facts in enumerate(self.others):
            before = self._clones.pop(index, None)
            if before is not None:
                change = _wide(facts.local.detach()) - _wide(before)
                if is_away(change):
                    changes.setdefault(change.device, []).append(change)
                self._slot(facts, UPDATES).fold(change)
                self.update_square += _square(change) * facts.part.parts
                if change.device.type == "cpu":
                    facts.moved[0] += bool(change.any())
                    facts.moved[1] += 1
        for away in self.away:
            away.updates(changes.get(away.device, ()))

    def look(self, step: int) -> None:
        """Follows the sample of coordinates: cosines of this update with the one before."""
        if not self._located:
            self._find(self._follow)
        self._located = False
        following = step == self._looked_at + 1
        for index, other in enumerate(self.others):
            self._look_at(index, other, following)
        if step != self._looked_at + 1:
            self.follower.restart()  # there was a step in between: no two updates in a row
        self._looked_at = step
        if self.follower.look():
            self._cosines.values[:] = self.follower.cosines
            self._cosines.fold()
        for away in self.away:
            away.look(step)

    def _look_at(self, index: int, facts: ParameterFacts, following: bool) -> None:
        """The same for a parameter that does not lie flat: by torch, where it is."""
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
            self._slot(facts, UPDATE_COSINE).fold(cosine[sizes > 0])

    def second_moments(self, optimizer: torch.optim.Optimizer) -> None:
        """Reads what Adam and its like keep of the squared gradient, at the sample."""
        for facts in self.all:
            state = optimizer.state.get(facts.parameter)
            moment = state.get("exp_avg_sq") if isinstance(state, dict) else None
            moment = local_part(moment) if isinstance(moment, torch.Tensor) else None
            if moment is not None and moment.numel() and readable.is_readable(moment):
                self._slot(facts, SECOND_MOMENT).fold(sampled(moment.detach(), SAMPLE))

    # -- helpers ------------------------------------------------------------------------------

    def _find(self, table: Table) -> None:
        """Weights that were put into other memory, of another size, are measured otherwise."""
        if not table.find(self._tensors):
            raise ParametersChangedError
        for spread in self._spread:
            if local_of(spread.parameter) is not spread.held:
                raise ParametersChangedError

    def _slot(self, facts: ParameterFacts, quantity: str) -> Slot:
        key = (facts.address, quantity)
        slot = self._slots.get(key)
        if slot is None:
            row = self._journal.row(*key, facts.info(self._journal.options.world))
            slot = self._journal.train.slot(0 if row is None else row)
            self._slots[key] = slot
        return slot

    def settle(self) -> None:
        """Brings the facts of each parameter up to date."""
        for line, facts in enumerate(self.flat):
            facts.steps = self.looked
            facts.with_grad = int(self.with_grad[line])
            facts.moved = [int(self.moved[0, line]), int(self.moved[1, line])]

    @property
    def turns(self) -> int:
        """Steps that it takes until every update was measured."""
        return self._snapshot.turns

    @property
    def memory(self) -> int:
        """Bytes of the snapshot."""
        clones = sum(clone.nbytes for clone in self._clones.values())
        return self._snapshot.memory + clones


class ParametersChangedError(Exception):
    """A parameter is not the tensor any more that it was: the set is made anew."""


_QUANTITIES: Final = (PARAMS, PARAM_GRADS, UNCLIPPED, UPDATES)


class _Snapshot:
    """Memory for copies of weights, of at most so many bytes: above, parameters take turns."""

    def __init__(self, sizes: Sequence[int], cap: int) -> None:
        self._chunks: list[list[int]] = [[]]
        room = 0
        for line, size in enumerate(sizes):
            size = -(-size // 64) * 64
            if size > cap:
                continue  # no turn is long enough for it
            if room + size > cap:
                self._chunks.append([])
                room = 0
            self._chunks[-1].append(line)
            room += size
        self._sizes = [-(-size // 64) * 64 for size in sizes]
        most = max(sum(self._sizes[line] for line in chunk) for chunk in self._chunks)
        self._memory = np.empty(most + 64, np.uint8) if most else np.empty(0, np.uint8)
        self._start = -(-self._memory.ctypes.data // 64) * 64
        self._next = 0
        self._turned = False
        self.turns = len(self._chunks)
        self.memory = most
        self.current = np.zeros(len(sizes), np.int64)

    def turn(self) -> bool:
        """Says where the copies of the next turn go (`current`): 0 for parameters not in it.

        False where that is the same as in the last turn.
        """
        if self._turned and self.turns == 1:
            return False
        self._turned = True
        self.current[...] = 0
        address = self._start
        for line in self._chunks[self._next]:
            self.current[line] = address
            address += self._sizes[line]
        self._next = (self._next + 1) % len(self._chunks)
        return True


def _away(journal: Journal, others: Sequence[ParameterFacts]) -> list[Away]:
    """Those that lie on devices, device by device."""
    devices: dict[torch.device, list[ParameterFacts]] = {}
    for facts in others:
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


def _square(tensor: torch.Tensor, factor: float = 1.0) -> float:
    """The sum of a tensor's squares; NaN, a number that is not there, where it has none.

    What lies on a device is not asked: `Away` has its squares.
    """
    if is_away(tensor) and readable.kind(tensor) is None:
        return 0.0
    if tensor.device.type != "cpu" or readable.kind(tensor) is not None:
        return float("nan")
    return (summarise(tensor.detach(), histogram=False).norm * factor) ** 2
