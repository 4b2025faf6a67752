"""From a model's output to its loss: the operations in between, replayed on another output.

    passage = passage_of(recording, loss)
    passage.problem                       # "", or why it cannot be replayed
    passage.replay(output).loss           # for the same output the same loss, bit for bit

A replay calls the same functions with the same constants, in the same order and with the same
random states; what depended on the output is computed anew. The numbers of shapes, and other
numbers that the script read from tensors, are what they were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

from nethook.addresses.nested import map_tensors, tensors
from nethook.addresses.paths import Path
from nethook.examining.loss_calls import BY_HAND, LossCall
from nethook.examining.recording import (
    MAKES_OF_DATA,
    Constant,
    GeneratorSlot,
    PassageOp,
    Read,
    Recording,
    Slot,
)
from nethook.examining.refusals import NotReplayableError
from nethook.hooks.autograd.lazy_copy import cheap_copy
from nethook.hooks.stack import raised_by_signal
from nethook.restoring.mixed_precision import autocast_as
from nethook.restoring.undo import Undo
from nethook.torch_private import set_grad

Told = Callable[[str, tuple[Any, ...], dict[str, Any], Any, str], None]
"""`told(name, args, kwargs, result, line)`: an operation of a passage has run."""

# Where a loss that is written by hand has its target: these before any other operation.
_MEET: Final = ("sub", "rsub", "gather", "getitem", "take_along_dim", "index_select", "mul", "rmul")


@dataclass(frozen=True, slots=True, eq=False)
class OpNote:
    """One operation, for people: its name and the line of the script."""

    name: str
    line: str
    file: str


@dataclass(frozen=True, slots=True, eq=False)
class TargetOrigin:
    """Where a target comes from.

    Attributes:
        tensor: as it was when it was first seen, before `view`, `transpose` and the like; None
            where it was made in the passage from nothing (`torch.ones_like(output)`).
        ops: from it to the loss, in order; of the last one the result is the target.
        call: the number of the loss among `Ran.calls`.
        path: of the model's input that it is, or whose memory it shows; None for any other.
    """

    tensor: torch.Tensor | None
    ops: tuple[OpNote, ...]
    call: int
    path: Path | None


@dataclass(frozen=True, slots=True, eq=False)
class Replayed:
    """What a replay has given: the loss, and every call of a loss function."""

    loss: torch.Tensor
    calls: tuple[LossCall, ...]


@dataclass(frozen=True, slots=True)
class _Noted:
    """A loss of the passage: which operation, and which tensors."""

    op: int
    kind: str
    prediction: int | None
    target: int | None
    options: Mapping[str, Any]


class Passage:
    """The operations from a model's output to its loss.

    Attributes:
        problem: why it cannot be replayed; "" where it can.
        numbers_used: why a replay on another output may not be what the script would have done;
            "" where it is. The script has read a number that depends on the output, and used it.
        ops: in their order.
        constants: tensors that entered.
        targets: where the target of each loss comes from.
        outputs, loss: the numbers of the tensors that it begins and ends with.
        reads: numbers that the script has read from tensors.
    """

    def __init__(self, recording: Recording, loss: int | None, problem: str = "") -> None:
        self.problem = problem or recording.problem
        self.ops: tuple[PassageOp, ...] = tuple(recording.ops)
        self.constants: tuple[Constant, ...] = tuple(recording.constants)
        self.numbers_used = ""
        self.targets: tuple[TargetOrigin, ...] = ()
        self._slots = recording.slots
        self._memories = tuple(recording.memories)
        self.outputs = tuple(recording.output_slots)
        self.reads = tuple(recording.reads)
        self.loss = loss
        self._states: Undo = recording.states
        self._generators = [(held.device, state) for held, state in recording.generators]
        self._losses: tuple[_Noted, ...] = ()
        self._dependent: frozenset[int] = frozenset()
        self._needed: frozenset[int] = frozenset()
        if loss is not None and not self.problem:
            self._dependent = self._forward(self.outputs)
            self._needed = self._behind(loss)
            self._losses = self._find_losses(recording)
            self.targets = tuple(self._origin(number) for number in range(len(self._losses)))
            self.numbers_used = self._used(recording.reads)
            if loss not in self._dependent:
                self.problem = "the loss does not depend on what the model has returned"

    @property
    def bytes(self) -> int:
        """Of the constants that it keeps."""
        held = [constant.value for constant in self.constants if constant.value is not None]
        return sum(tensor.numel() * tensor.element_size() for tensor in held)

    @property
    def writes_output(self) -> bool:
        """Whether the script writes to what the model has returned."""
        given = {self._memories[slot] for slot in self.outputs} - {None}
        return any(self._memories[slot] in given for op in self.ops for slot in op.writes)

    def replay(
        self,
        output: object,
        parameters: Mapping[str, torch.Tensor] | None = None,
        *,
        grad: bool = False,
        told: Told | None = None,
    ) -> Replayed:
        """The loss of another output.

        Random states are left where the passage leaves them: run it in a block `unchanged`. Where
        the script writes to the output, so does this (`writes_output`).

        Arguments:
            output: of the same form as the one that was recorded.
            parameters: of the model, address -> tensor, where the passage uses any.
            grad: whether autograd records what it recorded then.
            told: of every operation, when it has run.

        Raises:
            NotReplayableError: it cannot be replayed, or not with this.
        """
        if self.problem or self.loss is None:
            raise NotReplayableError(self.problem or "no backward pass was seen")
        given = [tensor for _, tensor in tensors(output)]
        if len(given) != len(self.outputs):
            raise NotReplayableError(
                f"the model returned {len(given)} tensors where it had returned {len(self.outputs)}"
            )
        values: list[Any] = [None] * self._slots
        for slot, tensor in zip(self.outputs, given, strict=True):
            values[slot] = tensor if grad else tensor.detach()
        for constant in self.constants:
            values[constant.slot] = self._value(constant, parameters or {}, grad=grad)
        generators = [_generator(*held) for held in self._generators]
        noted_at = {noted.op: noted for noted in self._losses}
        calls: list[LossCall] = []
        self._states()
        was_on = torch.is_grad_enabled()
        try:
            for number, op in enumerate(self.ops):
                if number not in self._needed and not op.draws:
                    continue  # what the script does besides: gradients cleared, metrics
                if number in noted_at:
                    calls.append(self._noted(noted_at[number], values))
                set_grad(grad and op.grad)
                self._run(op, values, generators, told)
        finally:
            set_grad(was_on)
        return Replayed(values[self.loss], tuple(calls))

    def _run(
        self, op: PassageOp, values: list[Any], generators: Sequence[Any], told: Told | None
    ) -> None:
        def filled(value: Any) -> Any:
            if isinstance(value, GeneratorSlot):
                return generators[value.number]
            return values[value.number] if isinstance(value, Slot) else value

        args, kwargs = map_tensors(lambda tensor: tensor, (op.args, op.kwargs), filled)
        try:
            with autocast_as(op.autocast):
                result = op.function(*args, **kwargs)
        except Exception as error:
            if raised_by_signal(error):
                raise
            raise NotReplayableError(
                f"`{op.name}` at {op.line} fails on changed data ({type(error).__name__})"
            ) from error
        if told is not None:
            told(op.name, args, kwargs, result, op.line)
        made = [tensor for _, tensor in tensors(result)]
        if len(made) != len(op.results):
            raise NotReplayableError(f"`{op.name}` at {op.line} returned another number of tensors")
        for slot, tensor in zip(op.results, made, strict=True):
            values[slot] = tensor

    def _value(
        self, constant: Constant, parameters: Mapping[str, torch.Tensor], *, grad: bool
    ) -> torch.Tensor:
        if constant.parameter:
            if constant.parameter not in parameters:
                raise NotReplayableError(
                    f"the loss uses the parameter {constant.parameter}, which the copy lacks"
                )
            held = parameters[constant.parameter]
            return held if grad else held.detach()
        assert constant.value is not None
        own = cheap_copy(constant.value)
        return own.requires_grad_() if grad and constant.trained else own

    def _noted(self, noted: _Noted, values: Sequence[Any]) -> LossCall:
        op = self.ops[noted.op]
        return LossCall(
            noted.kind,
            None if noted.prediction is None else values[noted.prediction],
            None if noted.target is None else values[noted.target],
            noted.options, inside_model=False, line=op.line, op=noted.op,
        )  # fmt: skip

    # -- who depends on whom ----------------------------------------------------------------------

    def _forward(self, start: Sequence[int]) -> frozenset[int]:
        """What depends on some tensors, by results and by writing."""
        reached = set(start)
        written: set[int | None] = set()  # memory into which something of it was written
        for op in self.ops:
            if any(slot in reached or self._memories[slot] in written for slot in op.reads):
                reached.update(op.results, op.writes)
                written.update(self._memories[slot] for slot in op.writes)
                written.discard(None)
        return frozenset(reached)

    def _behind(self, slot: int) -> frozenset[int]:
        """The numbers of the operations that a tensor depends on."""
        wanted, needed = {slot}, set()
        memories = {self._memories[slot]}
        for number in range(len(self.ops) - 1, -1, -1):
            op = self.ops[number]
            # A write reaches every tensor that shows the same memory.
            written = {self._memories[slot] for slot in op.writes} - {None}
            if wanted.intersection(op.results) or memories & written:
                needed.add(number)
                wanted.update(op.reads)
                memories.update(self._memories[slot] for slot in op.reads)
        return frozenset(needed)

    def _find_losses(self, recording: Recording) -> tuple[_Noted, ...]:
        """Calls of loss functions that the loss is made of; else where output and target meet.

        A call that the output does not go into is left out, where there are others.
        """
        noted = [
            _Noted(op, given.kind, _number(given.prediction), _number(given.target), given.options)
            for op, given in recording.losses
            if op in self._needed
        ]
        mine = [one for one in noted if {one.prediction, one.target} & self._dependent]
        return tuple(mine or noted) or self._meeting()

    def _meeting(self) -> tuple[_Noted, ...]:
        """Where something that depends on the output meets data, in a loss written by hand."""
        data = self._forward(
            [
                constant.slot
                for constant in self.constants
                if not (constant.parameter or constant.trained) and len(constant.shape) > 0
            ]
        )
        found: list[tuple[int, _Noted]] = []
        for number in sorted(self._needed):
            op = self.ops[number]
            outputs = [slot for slot in op.reads if slot in self._dependent]
            others = [slot for slot in op.reads if slot in data and slot not in self._dependent]
            if outputs and others:
                rank = _MEET.index(op.name) if op.name in _MEET else len(_MEET)
                noted = _Noted(number, BY_HAND, outputs[0], others[-1], {"operation": op.name})
                found.append((min(rank, 1) if rank < len(_MEET) else rank, noted))
        return (min(found, key=lambda pair: (pair[0], pair[1].op))[1],) if found else ()

    def _origin(self, number: int) -> TargetOrigin:
        """Follows a target back to the constant that it is made of."""
        noted = self._losses[number]
        slot, before = noted.target, noted.op
        constants = {constant.slot: constant for constant in self.constants}
        ops: list[OpNote] = []
        while slot is not None and slot not in constants:
            made = [
                index
                for index in range(before)
                if slot in self.ops[index].results and slot not in self.ops[index].reads
            ]
            if not made:
                break
            before = made[-1]
            op = self.ops[before]
            ops.append(OpNote(op.name, op.line, op.file))
            given = [read for read in op.reads if read not in self._dependent]
            slot = given[0] if given else None
        constant = None if slot is None else constants.get(slot)
        ops.reverse()
        if constant is None:
            return TargetOrigin(None, tuple(ops), number, None)
        return TargetOrigin(constant.value, tuple(ops), number, constant.path)

    def _used(self, reads: Sequence[Read]) -> str:
        """Whether a number that depends on the output was read, and then used."""
        mine = [read for read in reads if read.slot in self._dependent]
        if not mine:
            return ""
        for number in sorted(self._needed):
            op = self.ops[number]
            earlier = [read for read in mine if read.op <= number]
            if not earlier:
                continue
            if op.name in MAKES_OF_DATA and not op.reads:
                return f"`{earlier[0].how}` takes numbers of the output out of torch"
            numbers = _numbers((op.args, op.kwargs))
            if any(read.value is not None and read.value in numbers for read in earlier):
                return f"`{op.name}` at {op.line} uses a number that was read from the output"
        return ""


def passage_of(recording: Recording, roots: Sequence[torch.Tensor]) -> Passage:
    """The passage that ends in what `backward` is called for."""
    if recording.problem:
        return Passage(recording, None)
    if len(roots) != 1 or roots[0].numel() != 1:
        return Passage(recording, None, "backward is called for more than one number")
    slot = recording.slot_of(roots[0])
    if slot is None:
        return Passage(
            recording, None, "the loss was computed where nethook cannot see it, or before the "
            "model was last called",
        )  # fmt: skip
    return Passage(recording, slot)


def _number(value: object) -> int | None:
    return value.number if isinstance(value, Slot) else None


def _numbers(value: Any) -> set[float]:
    """The numbers among arguments that are not common ones."""
    if isinstance(value, float | int) and not isinstance(value, bool):
        return set() if value in (-1, 0, 1) or value != value else {float(value)}
    if isinstance(value, list | tuple):
        return set().union(*map(_numbers, value)) if value else set()
    if isinstance(value, dict):
        return _numbers(list(value.values()))
    return set()


def _generator(device: torch.device, state: torch.Tensor) -> torch.Generator:
    own = torch.Generator(device)
    own.set_state(state)
    return own
