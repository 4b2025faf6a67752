"""Recording what a script does with a model's output until it calls `backward`.

Every function of torch that is called is noted with its arguments: what an earlier call has
returned stands there as a number, and every other tensor is a constant, of which a copy is kept as
it was at first sight. Functions on targets alone are noted as well, for where a target comes from
matters.

What cannot be noted is the script's own: numbers that it reads from tensors and computes with, code
in C++ or compiled. Such a passage says so (`problem`); nothing is guessed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from nethook.addresses.nested import map_tensors, tensors
from nethook.addresses.paths import Path
from nethook.examining.loss_calls import LossArguments, arguments_of, is_loss
from nethook.hooks.autograd.lazy_copy import cheap_copy
from nethook.hooks.modes import quiet
from nethook.hooks.ops.names import op_name, written_arguments
from nethook.hooks.process.source_line import line_of_script
from nethook.hooks.stack import raised_by_signal
from nethook.restoring.mixed_precision import autocast_now
from nethook.restoring.randomness import save_random_states
from nethook.restoring.undo import Undo
from nethook.stats.memory import bytes_held
from nethook.torch_private import next_node_number, node_number, storage_id

MOST_OPS: Final = 4096
"""Operations between an output and its loss; a passage of more is not recorded to its end."""
MOST_BYTES: Final = 256 << 20
"""Bytes of constants that are kept."""

# Functions by which a script takes numbers out of torch.
_READS: Final = frozenset(
    {"item", "tolist", "numpy", "__array__", "__bool__", "__int__", "__float__", "__index__",
     "__complex__", "equal", "allclose", "is_nonzero", "__contains__", "__dlpack__"}
)  # fmt: skip
# Functions that make tensors of such numbers.
MAKES_OF_DATA: Final = frozenset({"tensor", "as_tensor", "asarray", "scalar_tensor"})


_generator: Final = torch.default_generator


class Slot:
    """Stands for a tensor of the passage, by its number. No container: it is not opened as one."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"<{self.number}>"


class GeneratorSlot(Slot):
    """Stands for a generator that was handed to a function, by its number."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class Constant:
    """A tensor that entered the passage from outside.

    Attributes:
        slot: its number.
        value: a copy, as it was at first sight; None for a parameter of the model itself.
        parameter: the address of a parameter of the model; "" otherwise.
        trained: whether it is a leaf that requires a gradient, as weights of a loss do.
        shape: of the tensor.
        path: of the model's input that it is, or whose memory it shows; None where it is new.
        op: the operation that used it first.
        grad: whether it has a gradient: such a leaf, or what was computed of one before.
    """

    slot: int
    value: torch.Tensor | None
    parameter: str
    trained: bool
    shape: tuple[int, ...]
    path: Path | None
    op: int
    grad: bool


@dataclass(slots=True, eq=False)
class PassageOp:
    """One call of a function of torch.

    Attributes:
        function: what was called.
        name: of the operation, as sites spell it; that of the function where it is none.
        args, kwargs: with a `Slot` for each tensor.
        reads: the numbers of the tensors it was given.
        results: those of the tensors it returned, in order.
        writes: those of the tensors it wrote to.
        draws: whether it drew random numbers, on the CPU.
        grad: whether autograd recorded it.
        autocast: device -> type of mixed precision, where that was on.
        line: of the script, `train.py:42`.
        file: the same with the whole path.
    """

    function: Callable[..., Any]
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    reads: tuple[int, ...]
    results: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    draws: bool = False
    grad: bool = True
    autocast: Mapping[str, str] = field(default_factory=dict)
    line: str = ""
    file: str = ""


@dataclass(frozen=True, slots=True)
class Read:
    """A number that the script took out of torch: `loss.item()`, `if loss > 3:`."""

    op: int  # operations before it
    slot: int
    how: str
    value: float | None


class Recording:
    """A passage while it is recorded. Nothing in it raises into the script.

    Arguments:
        output: what the model has returned.
        inputs: what it was given: targets may be parts of that.
        parameters: the model's, id -> address.
        first_node: the number that autograd's next node had when the model was called.
    """

    def __init__(
        self,
        output: object,
        inputs: object = None,
        parameters: Mapping[int, str] | None = None,
        first_node: int | None = None,
    ) -> None:
        self.problem = ""
        """Why it cannot be replayed; "" where it can, so far."""
        self.ops: list[PassageOp] = []
        self.constants: list[Constant] = []
        self.losses: list[tuple[int, LossArguments]] = []
        self.reads: list[Read] = []
        self.slots = 0
        self.memories: list[int | None] = []
        """Of each tensor, a number of the memory that it lies in."""
        self.outputs = 0
        self.bytes = 0
        self.seconds = 0.0
        """That noting calls has taken."""
        self.states: Undo = save_random_states()
        """Puts the random states back that there were when the model had returned."""
        self.generators: list[tuple[torch.Generator, torch.Tensor]] = []
        # By id; the tensor is held, so that its id is nobody else's while this lasts.
        self._known: dict[int, tuple[torch.Tensor, int]] = {}
        self._parameters = parameters or {}
        self._first_node = next_node_number() if first_node is None else first_node
        self._inputs: dict[int, Path] = {}
        with quiet():
            for path, tensor in tensors(inputs):
                memory = _memory(tensor)
                if memory is not None:
                    self._inputs.setdefault(memory, path)
            for _, tensor in tensors(output):
                if id(tensor) not in self._known:
                    self._enter(tensor)
                self.outputs += 1
            self.output_slots = [self._known[id(tensor)][1] for _, tensor in tensors(output)]

    def seen(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        run: Callable[[], Any],
    ) -> Any:
        """A function of torch is called: notes it, and calls it."""
        if self.problem:
            return run()
        op: PassageOp | None = None
        began = time.perf_counter()
        try:
            with quiet():
                op = self._before(function, args, kwargs)
        except Exception as error:
            self._give_up(function, error)
        before = _generator.get_state()
        called = time.perf_counter()
        result = run()
        returned = time.perf_counter()
        if not self.problem:
            try:
                with quiet():
                    if op is not None:
                        op.draws = not torch.equal(before, _generator.get_state())
                    self._after(op, function, args, kwargs, result)
            except Exception as error:
                self._give_up(function, error)
        self.seconds += called - began + time.perf_counter() - returned
        return result

    def slot_of(self, tensor: torch.Tensor) -> int | None:
        """The number of a tensor of the passage; None where it is not known."""
        known = self._known.get(id(tensor))
        return None if known is None else known[1]

    def let_go(self) -> None:
        """Holds no tensor of the script's any more."""
        self._known.clear()

    # -- what is noted --------------------------------------------------------------------------

    def _before(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> PassageOp | None:
        name = op_name(function)
        plain = getattr(function, "__name__", None) or ""
        if name is None and plain != "__set__":
            return None  # what computes nothing writes nothing: it is looked at afterwards
        if len(self.ops) >= MOST_OPS:
            self.problem = f"there are more than {MOST_OPS:,} operations between output and loss"
            return None
        if plain == "__set__" and _attribute(function) == "grad":
            return None
        return self._op(function, name or plain, args, kwargs)

    def _op(
        self,
        function: Callable[..., Any],
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> PassageOp:
        reads: list[int] = []

        def stand_in(tensor: torch.Tensor) -> Slot:
            slot = self._slot(tensor)
            reads.append(slot)
            return Slot(slot)

        own_args, own_kwargs = map_tensors(stand_in, (args, kwargs), self._other, fresh=True)
        line = line_of_script(or_library=True)
        op = PassageOp(
            function, name, own_args, own_kwargs, tuple(reads),
            grad=torch.is_grad_enabled(), autocast=autocast_now(), line=str(line),
            file=f"{line.file}:{line.line}",
        )  # fmt: skip
        written = written_arguments(function, args, kwargs)
        if name == "__set__" and args and isinstance(args[0], torch.Tensor):
            written = [args[0]]
        op.writes = tuple(self._slot(tensor) for tensor in written)
        if is_loss(function):
            self.losses.append((len(self.ops), arguments_of(function, own_args, own_kwargs)))
        return op

    def _after(
        self,
        op: PassageOp | None,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: Any,
    ) -> None:
        made = [tensor for _, tensor in tensors(result)]
        if op is None:
            plain = getattr(function, "__name__", None) or ""
            if plain in _READS:
                self._read(plain, args, result)
            name = _attribute(function) or plain
            # A gradient is no function of its tensor: where it is used, it is a constant.
            if not made or name in ("backward", "__reduce_ex__", "grad"):
                return
            op = self._op(function, name, args, kwargs)  # `x.T`, `x.data`
        if not made and not op.writes:
            return
        slots = []
        for tensor in made:
            known = self._known.get(id(tensor))
            slots.append(self._enter(tensor) if known is None else known[1])
        op.results = tuple(slots)
        self.ops.append(op)

    def _read(self, how: str, args: tuple[Any, ...], result: Any) -> None:
        for _, tensor in tensors(args):
            slot = self.slot_of(tensor)
            if slot is not None:
                number = isinstance(result, int | float) and not isinstance(result, bool)
                self.reads.append(Read(len(self.ops), slot, how, float(result) if number else None))

    def _slot(self, tensor: torch.Tensor) -> int:
        known = self._known.get(id(tensor))
        return self._constant(tensor) if known is None else known[1]

    def _constant(self, tensor: torch.Tensor) -> int:
        if tensor.grad_fn is not None and node_number(tensor.grad_fn) >= self._first_node:
            raise _UnseenError
        parameter = self._parameters.get(id(tensor), "")
        value = None
        if not parameter:
            self.bytes += bytes_held(tensor)
            if self.bytes > MOST_BYTES:
                raise _TooLargeError
            value = cheap_copy(tensor, detach=True)
        memory = _memory(tensor)
        slot = self._enter(tensor)
        self.constants.append(
            Constant(
                slot, value, parameter, tensor.is_leaf and tensor.requires_grad,
                tuple(tensor.shape), None if memory is None else self._inputs.get(memory),
                len(self.ops), tensor.requires_grad,
            )
        )  # fmt: skip
        return slot

    def _enter(self, tensor: torch.Tensor) -> int:
        slot = self.slots
        self.slots += 1
        self.memories.append(_memory(tensor))
        self._known[id(tensor)] = tensor, slot
        return slot

    def _other(self, value: Any) -> Any:
        """What is neither a tensor nor a container."""
        if not isinstance(value, torch.Generator):
            return value
        for number, (generator, _) in enumerate(self.generators):
            if generator is value:
                return GeneratorSlot(number)
        self.generators.append((value, value.get_state()))
        return GeneratorSlot(len(self.generators) - 1)

    def _give_up(self, function: Callable[..., Any], error: Exception) -> None:
        if raised_by_signal(error):
            raise error  # that is the script's
        name = getattr(function, "__name__", None) or "a function"
        line = str(line_of_script(or_library=True))
        if isinstance(error, _UnseenError):
            self.problem = (
                f"`{name}` at {line} uses a tensor that was computed where nethook cannot see it"
            )
        elif isinstance(error, _TooLargeError):
            self.problem = f"more than {MOST_BYTES >> 20} MB enter between output and loss"
        else:
            self.problem = f"`{name}` at {line} could not be recorded ({type(error).__name__})"
        self.ops.clear()
        self.constants.clear()
        self._known.clear()


class _UnseenError(Exception):
    """A tensor depends on what ran since the model was called, and by no call that was seen."""


class _TooLargeError(Exception):
    """Constants take too much memory."""


def _attribute(function: Callable[..., Any]) -> str:
    """The attribute that a function reads or sets: `T` for `x.T`; "" for any other function."""
    if getattr(function, "__name__", "") not in ("__get__", "__set__"):
        return ""
    return str(getattr(getattr(function, "__self__", None), "__name__", ""))


def _memory(tensor: torch.Tensor) -> int | None:
    """A number of the memory that a tensor lies in."""
    try:
        return int(storage_id(tensor.untyped_storage()))
    except (RuntimeError, NotImplementedError):
        return None
