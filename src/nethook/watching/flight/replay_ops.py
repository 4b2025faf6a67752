"""Finding the operation that made the first NaN, in a forward and in its backward."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from nethook.addresses.nested import tensors
from nethook.hooks.attachment import Attachment
from nethook.hooks.autograd.compact import compact_clone
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.modes import quiet
from nethook.hooks.ops.consumer import Op, OpConsumer
from nethook.hooks.ops.names import written_arguments
from nethook.hooks.process.source_line import line_of_script
from nethook.torch_private import next_node_number, node_number
from nethook.watching.flight.ranges import is_finite, range_of
from nethook.watching.losses.graph import is_leaf, name_of

# Where a tensor that is not finite has it from.
FILLED, MADE, DATA, PARAMETERS = "filled", "made", "data", "parameters"

_FILLS: Final = frozenset(
    {"masked_fill", "full", "full_like", "new_full", "fill", "where", "tensor", "setitem",
     "index_fill", "nan_to_num", "masked_scatter", "index_put", "scatter", "clamp", "pad"}
)  # fmt: skip
"""Operations by which a script writes a value of its own choice."""


@dataclass
class SeenOp:
    """One operation of a replay, with what it was given and what it returned."""

    address: str
    name: str
    site: str
    source: str
    operands: list[Any]  # tensors and numbers, in order
    result: Any = None
    first_node: int = 0  # autograd nodes that it made are numbered from here …
    last_node: int = 0  # … to before this


@dataclass
class FoundNode:
    """The first autograd node that turned finite gradients into others."""

    node: str
    number: int
    grads_in: tuple[Any, ...] = ()  # what arrived
    grads_out: tuple[Any, ...] = ()  # what it made


@dataclass
class Findings:
    """What came to light in a forward."""

    made: SeenOp | None = None  # the operation that made what has reached the end
    met: SeenOp | None = None  # the one that was first given what the batch or parameters had
    met_from: str = ""
    ops: list[SeenOp] = field(default_factory=list)


@dataclass(frozen=True)
class Origin:
    """Where a tensor that is not finite has it from, and the operation that made or met it."""

    kind: str
    op: SeenOp | None = None


class Finder(OpConsumer):
    """Looks at every operation of a forward as it runs."""

    def __init__(self, data: object, parameters: object) -> None:
        self.findings = Findings()
        # Of tensors that are not finite; they are held, for another one could get the same id.
        self._origin: dict[int, tuple[torch.Tensor, Origin]] = {}
        self._running: list[SeenOp] = []
        for value, origin in ((data, DATA), (parameters, PARAMETERS)):
            for _, tensor in tensors(value):
                if not is_finite(tensor):
                    value_range = range_of(tensor)
                    mask = (
                        origin == DATA
                        and value_range is not None
                        and not (value_range.nan or value_range.posinf)
                    )
                    self._origin[id(tensor)] = (tensor, Origin(FILLED if mask else origin))

    def before(
        self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Keeps what an operation is given; what it will write to is copied."""
        with quiet():
            written = {id(tensor) for tensor in written_arguments(function, args, kwargs)}
            operands = [
                _kept(operand, copied=id(operand) in written)
                for operand in _operands((args, kwargs))
            ]
            for operand in operands:
                if isinstance(operand, _Copy):
                    self._inherit(operand)
        seen = SeenOp(
            op.address, op.name, op.place.address, line_of_script(or_library=True).text,
            [operand.copy if isinstance(operand, _Copy) else operand for operand in operands],
            first_node=next_node_number(),
        )  # fmt: skip
        self._running.append(seen)

    def _inherit(self, kept: _Copy) -> None:
        held = self._origin.get(id(kept.original))
        if held is not None:
            self._origin[id(kept.copy)] = (kept.copy, held[1])

    def failed(
        self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        error: BaseException,
    ) -> None:  # fmt: skip
        """Forgets an operation that raised."""
        self._running.pop()

    def after(
        self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        result: Any,
    ) -> None:  # fmt: skip
        """Looks at what an operation returned."""
        seen = self._running.pop()
        seen.result, seen.last_node = result, next_node_number()
        self.findings.ops.append(seen)
        with quiet():
            bad = [tensor for _, tensor in tensors(result) if not is_finite(tensor)]
            if not bad:
                return
            origin = self._judge(seen, bad)
            for tensor in bad:
                self._origin[id(tensor)] = (tensor, origin)

    def conclude(self, output: object) -> None:
        """The forward has ended: blames whoever made what is in its output."""
        origins = [
            self._origin[id(tensor)] for _, tensor in tensors(output) if id(tensor) in self._origin
        ]
        if not origins and not is_finite(output):
            # It was made by something that is no operation, such as an autograd.Function.
            origins = list(self._origin.values())
        for _, origin in origins:
            if origin.op is None:
                continue
            if origin.kind == MADE:
                self.findings.made = self.findings.made or origin.op
            elif self.findings.met is None:
                self.findings.met, self.findings.met_from = origin.op, origin.kind

    def _judge(self, seen: SeenOp, bad: list[torch.Tensor]) -> Origin:
        """Where a result has its NaN from."""
        given = [operand for operand in seen.operands if isinstance(operand, torch.Tensor)]
        poisoned = [tensor for tensor in given if not is_finite(tensor)]
        if not poisoned:
            numbers = [operand for operand in seen.operands if isinstance(operand, float)]
            if seen.name in _FILLS and any(not abs(number) < float("inf") for number in numbers):
                return Origin(FILLED)
            return Origin(MADE, seen)
        origins = [self._origin.get(id(tensor), (None, Origin(FILLED)))[1] for tensor in poisoned]
        for kind in (MADE, DATA, PARAMETERS):
            for origin in origins:
                if origin.kind == kind:
                    return Origin(kind, origin.op or seen)
        # Of infinities that the script wrote itself something else was made.
        fresh = _has_nan(bad) and not _has_nan(poisoned)
        return Origin(MADE, seen) if fresh else Origin(FILLED)


@dataclass
class _Copy:
    original: torch.Tensor
    copy: torch.Tensor


def _kept(value: Any, *, copied: bool) -> Any:
    return _Copy(value, compact_clone(value.detach())) if copied else value


def _operands(value: Any) -> Iterator[Any]:
    """Tensors and numbers of a call's arguments, in order."""
    if isinstance(value, torch.Tensor | int | float) and not isinstance(value, bool):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _operands(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _operands(item)


def _has_nan(values: list[torch.Tensor]) -> bool:
    return any(one.nan for tensor in values if (one := range_of(tensor)) is not None)


# -- backward --------------------------------------------------------------------------------------


class GradientFinder(Hook):
    """On every node of a graph: notes the first that makes NaN of finite gradients."""

    __slots__ = ("first",)

    def __init__(self, owner: Owner) -> None:
        super().__init__(owner, "backward")
        self.first: FoundNode | None = None

    def attach(self, root: torch.Tensor, hooks: Attachment) -> None:
        """Puts a hook on every node behind a tensor."""
        waiting = [root.grad_fn]
        seen = set(waiting)
        while waiting:
            node = waiting.pop()
            if node is None or is_leaf(node):
                continue
            hooks.node(node, _OnNode(self.owner, self, name_of(node), node_number(node)))
            for into, _ in node.next_functions:
                if into is not None and into not in seen:
                    seen.add(into)
                    waiting.append(into)


class _OnNode(Hook):
    __slots__ = ("finder", "name", "number")

    def __init__(self, owner: Owner, finder: GradientFinder, name: str, number: int) -> None:
        super().__init__(owner, name)
        self.finder = finder
        self.name = name
        self.number = number

    def __call__(self, grad_inputs: tuple[Any, ...], grad_outputs: tuple[Any, ...]) -> None:
        finder = self.finder
        if finder.first is None and is_finite(grad_outputs) and not is_finite(grad_inputs):
            finder.first = FoundNode(self.name, self.number, grad_outputs, grad_inputs)


def op_of(node: FoundNode, ops: list[SeenOp]) -> SeenOp | None:
    """The operation that made a node; nodes are numbered in the order in which they were made."""
    by_end = [op.last_node for op in ops]
    index = bisect_left(by_end, node.number + 1)
    if index < len(ops) and ops[index].first_node <= node.number < ops[index].last_node:
        return ops[index]
    return None
