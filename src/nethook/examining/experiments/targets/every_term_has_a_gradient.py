"""Every term has a gradient: what is added to a loss depends on the weights, and says so.

Experiment: the sums that the loss ends in are read backwards, none is run. A summand was made of
the output or the weights, and the way back to them is cut: by `.item()`, `.detach()`, `.data`,
`torch.no_grad()` or `torch.tensor(…)`. Or it is a loss function of torch, and nothing that it was
given has a gradient.

Meaning: a penalty that is added as a plain number, `loss + 0.01 * penalty.item()`; it shows in the
printed loss, and changes no gradient. A distillation that compares the teacher with itself.

Cost: none.

Does not apply: where the operations between output and loss were not recorded. A factor may be a
number that was read: it weighs the other terms. So is a summand whose other side is its own copy
with a gradient, `loss + (shown - loss).detach()`: it changes what is printed alone. Losses of one
line, of which some have a gradient, are the steps of a loop: the first may be a given start.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Final

from nethook.examining.experiment import Result, fine, found, not_applicable
from nethook.examining.loss_calls import is_loss
from nethook.examining.passage import Passage
from nethook.examining.recording import MAKES_OF_DATA, PassageOp, Slot
from nethook.examining.rehearsal import Rehearsal

_SUMS: Final = frozenset({"add", "radd", "sub", "rsub"})
_OF_CONSTANTS: Final = "a loss of tensors without a gradient"
# What leaves a sum a sum: its value is scaled, or brought to another type or shape.
_THROUGH: Final = frozenset(
    {"mul", "rmul", "div", "true_divide", "neg", "to", "float", "double", "squeeze", "view",
     "reshape", "clone"}
)  # fmt: skip
_REDUCED: Final = frozenset({"mean", "sum"})
_CUTS: Final = frozenset({"detach", "data", "item"})
_READS: Final = 64
"""Numbers that were read last, of which one is looked for."""


class EveryTermHasAGradient:
    """See the module."""

    name = "every term has a gradient"
    turn = 2

    def applies(self, rehearsal: Rehearsal) -> str | None:
        """None, or why not."""
        passage = rehearsal.passage
        if passage is None or passage.loss is None or not passage.ops:
            return "the operations between output and loss were not recorded"
        return None

    def run(self, rehearsal: Rehearsal) -> Result:
        """The summands, one after the other."""
        passage = rehearsal.passage
        assert passage is not None
        sums = _Sums(passage)
        if not sums.found:
            return not_applicable(self, "the loss is no sum")
        for op, how in (*sums.cut(), *sums.of_constants()):
            return found(self, how=how, lines=[op.line] if op.line else [])
        return fine(self, sums=len(sums.found))


class _Sums:
    """The sums at the end of a passage, and what their summands are made of."""

    def __init__(self, passage: Passage) -> None:
        self._passage = passage
        # Of each tensor the operations that made it; `loss += term` makes it once more.
        self._made: dict[int, list[PassageOp]] = {}
        for op in passage.ops:
            for slot in op.results:
                self._made.setdefault(slot, []).append(op)
        held = [one for one in passage.constants if one.parameter or one.trained]
        start = {*passage.outputs, *(constant.slot for constant in held)}
        computed = {constant.slot for constant in passage.constants if constant.grad}
        self._derived = self._reached(start, cut=False)
        self._alive = self._reached(start | computed, cut=True)
        self.found: list[PassageOp] = []
        if passage.loss is not None:
            self._look(passage.loss)

    def _reached(self, start: set[int], *, cut: bool) -> set[int]:
        """What is made of some tensors; with `cut`, as far as gradients go."""
        reached = set(start)
        for at, op in enumerate(self._passage.ops):
            fresh = op.name in MAKES_OF_DATA
            if cut and (fresh or not op.grad or op.name in _CUTS):
                continue
            copied = fresh and any(self._is_read(one, at, reached) for one in _numbers(op))
            if copied or any(slot in reached for slot in op.reads):
                reached.update(op.results, op.writes)
        return reached

    def _look(self, loss: int) -> None:
        waiting, seen = [loss], set()
        while waiting:
            for op in self._made.get(waiting.pop(), ()):
                if id(op) in seen:
                    continue
                seen.add(id(op))
                if op.name in _SUMS and len(_operands(op)) == 2:
                    self.found.append(op)
                elif not (op.name in _THROUGH and len(op.reads) == 1):
                    continue
                waiting.extend(op.reads)

    def cut(self) -> Iterator[tuple[PassageOp, str]]:
        """Sums with a summand whose way back is cut, and how: as a number, or as a tensor."""
        for op in self.found:
            at = self._passage.ops.index(op)
            for mine, other in itertools.permutations(_operands(op)):
                if not (isinstance(other, Slot) and other.number in self._alive):
                    continue
                if isinstance(mine, Slot):
                    number = mine.number
                    dead = number in self._derived and number not in self._alive
                    if dead and other.number not in self._behind(number):
                        yield op, "a tensor without a gradient"
                elif isinstance(mine, float) and self._is_read(mine, at, self._derived):
                    yield op, "a plain number"

    def of_constants(self) -> Iterator[tuple[PassageOp, str]]:
        """Loss functions that are summands, and of which nothing has a gradient."""
        losses = [op for op in self._passage.ops if is_loss(op.function)]
        living = {op.file for op in losses if self._alive.intersection(op.results)}
        for added in self.found:
            for mine, other in itertools.permutations(_operands(added)):
                if not (isinstance(other, Slot) and other.number in self._alive):
                    continue
                op = self._loss_of(mine.number) if isinstance(mine, Slot) else None
                dead = op is not None and not self._alive.intersection(op.reads)
                if op is not None and dead and op.file not in living:
                    yield op, _OF_CONSTANTS

    def _loss_of(self, slot: int) -> PassageOp | None:
        """The loss function that a summand is, times a number or reduced by hand."""
        for op in self._made.get(slot, ()):
            if is_loss(op.function):
                return op if len(op.reads) > 1 else None
            if op.name in _THROUGH | _REDUCED and len(op.reads) == 1:
                return self._loss_of(op.reads[0])
        return None

    def _behind(self, slot: int) -> set[int]:
        """Everything that a tensor is made of."""
        waiting, seen = [slot], {slot}
        while waiting:
            for op in self._made.get(waiting.pop(), ()):
                waiting += [read for read in op.reads if read not in seen]
                seen.update(op.reads)
        return seen

    def _is_read(self, number: float, before: int, slots: set[int]) -> bool:
        """Whether a number was read from one of these tensors, or from several, times a factor."""
        reads = [
            read.value
            for read in self._passage.reads
            if read.op <= before and read.slot in slots and read.value
            if not _is_typed(read.value)
        ][-_READS:]
        sums = (math.fsum(reads[at:]) for at in range(len(reads)))
        return any(_is_typed(number / one) for one in (*reads, *sums) if one)


def _is_typed(factor: float) -> bool:
    """Whether a number looks like one that somebody has typed: two digits and a power of ten."""
    if not math.isfinite(factor) or not 1e-12 < abs(factor) < 1e12:
        return False
    scale = 10.0 ** (math.floor(math.log10(abs(factor))) - 1)
    digits = factor / scale
    return abs(digits - round(digits)) < 1e-5 * abs(digits)


def _operands(op: PassageOp) -> tuple[object, ...]:
    other = op.kwargs.get("other")
    return (*op.args[:2], *(() if other is None else (other,)))[:2]


def _numbers(op: PassageOp) -> list[float]:
    """The numbers that a tensor is made of."""
    first = op.args[0] if op.args else op.kwargs.get("data")
    values = first if isinstance(first, list | tuple) else [first]
    return [value for value in values if isinstance(value, float)]
