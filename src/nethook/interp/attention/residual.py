"""What a block adds to the residual stream, read from the values of one forward.

The stream begins as the block's input. An addition of two tensors of its shape, one of which is the
stream, is a write: the other one is what was written, and the sum is the stream from then on. If
a later addition takes a norm of the stream for the stream, the layout is post-norm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch

from nethook.addresses.nested import tensors
from nethook.hooks.ops.consumer import ModuleCall, Op, OpConsumer, Place
from nethook.kinds.operations import ATTENTION, FUSED_ATTENTION, PASS

Layout = Literal["sequential", "parallel", "post-norm"]
Role = Literal["attention", "cross-attention", "mlp"]
_ADDITIONS = frozenset({"add", "iadd", "radd"})


@dataclass(frozen=True)
class Write:
    """What is added to the stream: its role, and the outermost module that returned it."""

    role: Role
    address: str


@dataclass(frozen=True, eq=False)
class _Sum:
    """An addition of two tensors of the stream's shape."""

    left: torch.Tensor
    right: torch.Tensor
    total: torch.Tensor
    attentions: int  # how many attentions had run in the block before
    returned: int  # how many modules had returned


@dataclass(frozen=True, eq=False)
class _Returned:
    """What a module inside the block returned."""

    address: str
    given: torch.Tensor | None
    value: torch.Tensor
    attentions: tuple[int, int]  # run before it began and before it returned
    has_matrix: bool  # a norm has none


class BlockWalk:
    """What happens in one call of a module that may be a block."""

    def __init__(self, place: Place, given: torch.Tensor | None) -> None:
        self.address = place.address
        self.place = place
        self.given = None if given is None else given.clone()
        self.output: torch.Tensor | None = None
        self.attentions = 0
        self._sums: list[_Sum] = []
        self._returned: list[_Returned] = []
        self._read: list[torch.Tensor] = []  # what operations other than additions were given
        self._states: list[torch.Tensor] = []  # the stream, before and after each write

    @property
    def is_block(self) -> bool:
        """Whether it returned something of the shape that it was given."""
        given, output = self.given, self.output
        return given is not None and output is not None and given.shape == output.shape

    def _in_stream(self, tensor: object) -> torch.Tensor | None:
        """A copy of a tensor in the stream's shape; some models flatten the tokens on the way."""
        given = self.given
        if not isinstance(tensor, torch.Tensor) or given is None or not tensor.ndim:
            return None
        if tensor.numel() != given.numel() or tensor.shape[-1] != given.shape[-1]:
            return None
        return tensor.detach().reshape(given.shape).clone()

    def saw(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """An operation ran inside."""
        if op.name in (FUSED_ATTENTION, ATTENTION) or (
            op.name == "softmax" and isinstance(result, torch.Tensor) and result.ndim == 4
        ):
            self.attentions += 1
        given = [tensor for _, tensor in tensors((args, kwargs))]
        kept = [(tensor, copy) for tensor in given if (copy := self._in_stream(tensor)) is not None]
        total = self._in_stream(result)
        if op.name in _ADDITIONS and len(kept) == 2 and total is not None:
            (first, left), (second, right) = kept
            # An addition in place has overwritten what it was given.
            if first is result:
                left = total - right
            elif second is result:
                right = total - left
            self._sums.append(_Sum(left, right, total, self.attentions, len(self._returned)))
        elif kept and op.name not in PASS:
            self._read.append(kept[0][1])

    def returned(self, place: Place, given: torch.Tensor | None, output: Any, before: int) -> None:
        """A module inside returned."""
        value = self._in_stream(next((tensor for _, tensor in tensors(output)), None))
        if value is not None:
            module = place.module
            weights = () if module is None else module.parameters()
            self._returned.append(
                _Returned(
                    place.address, self._in_stream(given), value, (before, self.attentions),
                    has_matrix=any(weight.ndim > 1 for weight in weights),
                )
            )  # fmt: skip

    def found(self) -> tuple[Layout | None, tuple[Write, ...]]:
        """The layout, and what was written."""
        stream, norms = self.given, 0
        assert stream is not None
        assert self.output is not None
        self._states = [stream]
        writes: list[Write] = []
        parallel = read = False
        seen = 0
        for each in self._sums:
            was, normed = self._stream_in(each, stream)
            if was is None:
                continue
            norms += normed
            other = each.right if was is each.left else each.left
            if writes and any(_same(stream, tensor) for tensor in self._read):
                read = True  # what was written so far is read by what comes next
            found = self._written(other, each, seen)
            parallel = parallel or len(found) > 1
            seen = each.attentions
            writes += found
            stream = each.total
            self._states.append(stream)
        if not writes:
            return None, ()
        if not _same(stream, self.output):
            if not any(
                _same(n.given, stream) and _same(n.value, self.output) for n in self._returned
            ):
                return None, tuple(writes)
            norms += 1
        if norms or any(self._is_normed(write) for write in writes):
            return "post-norm", tuple(writes)
        if parallel or (len(writes) > 1 and not read):
            return "parallel", tuple(writes)
        return "sequential", tuple(writes)

    def readers(self) -> tuple[str, ...]:
        """The outermost modules that are given the stream, and do not hand it on themselves."""
        reading = [
            module.address
            for module in self._returned
            if any(_same(module.given, state) for state in self._states)
            and not any(_same(module.value, state) for state in self._states)
        ]
        return tuple(
            name
            for name in dict.fromkeys(reading)
            if not any(name.startswith(f"{other}.") for other in reading)
        )

    def _stream_in(self, each: _Sum, stream: torch.Tensor) -> tuple[torch.Tensor | None, bool]:
        """The side of a sum that is the stream, and whether a norm came before."""
        for side in (each.left, each.right):
            if _same(side, stream):
                return side, False
        for side in (each.left, each.right):
            for module in self._returned[: each.returned]:
                if _same(module.value, side) and _same(module.given, stream):
                    return side, True
        return None, False

    def _written(self, value: torch.Tensor, each: _Sum, seen: int) -> list[Write]:
        modules = self._returned[: each.returned]
        one = _outer([module for module in modules if _same(module.value, value)])
        if one is not None:
            return [Write(_role(each.attentions - seen, seen), one.address)]
        # The sum of two parts that did not read each other.
        for index, first in enumerate(modules):
            for second in modules[index + 1 :]:
                if _same(first.value + second.value, value):
                    left = _outer([m for m in modules if _same(m.value, first.value)])
                    right = _outer([m for m in modules if _same(m.value, second.value)])
                    assert left is not None
                    assert right is not None
                    return [_by_attention(left), _by_attention(right)]
        return [Write(_role(each.attentions - seen, seen), "")]

    def _is_normed(self, write: Write) -> bool:
        """Whether what was written is a norm of what a part returned."""
        module = next((m for m in self._returned if m.address == write.address), None)
        return (
            module is not None
            and not module.has_matrix
            and module.given is not None
            and module.attentions[0] == module.attentions[1]
            and not _same(module.given, module.value)
        )


def _depth(module: _Returned) -> int:
    return module.address.count(".")


def _outer(modules: list[_Returned]) -> _Returned | None:
    """The outermost module; of several beside each other, the first."""
    return min(modules, key=_depth, default=None)


def _by_attention(module: _Returned) -> Write:
    before, after = module.attentions
    return Write("attention" if after > before else "mlp", module.address)


def _role(new: int, seen: int) -> Role:
    if not new:
        return "mlp"
    return "attention" if seen == 0 else "cross-attention"


def _same(one: torch.Tensor | None, two: torch.Tensor | None) -> bool:
    if one is None or two is None or one.shape != two.shape:
        return False
    return torch.equal(one, two) or torch.allclose(one, two, rtol=1e-5, atol=1e-7)


class Walker(OpConsumer):
    """Follows every module that may be a block, and notes what runs around them."""

    def __init__(self, members: set[int]) -> None:
        self._members = members
        self.walks: list[BlockWalk] = []
        self._open: list[BlockWalk] = []
        self._begun: list[tuple[Place, torch.Tensor | None, list[int]]] = []
        self._order: list[str] = []  # modules, as they returned

    def after(
        self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        result: Any,
    ) -> None:  # fmt: skip
        """An operation ran."""
        for walk in self._open:
            walk.saw(op, args, kwargs, result)

    def entered(self, call: ModuleCall, args: tuple[Any, ...]) -> None:
        """A module was called."""
        first = next((tensor for _, tensor in tensors(args)), None)
        kept = None if first is None else first.clone()
        self._begun.append((call.place, kept, [walk.attentions for walk in self._open]))
        if id(call.place.module) in self._members:
            walk = BlockWalk(call.place, kept)
            self._open.append(walk)
            self.walks.append(walk)

    def left(self, call: ModuleCall, output: Any) -> None:
        """A module returned."""
        while self._begun and self._begun[-1][0] is not call.place:
            self._begun.pop()
        if not self._begun:
            return
        place, given, before = self._begun.pop()
        self._order.append(place.address)
        if self._open and self._open[-1].place is place:
            walk = self._open.pop()
            first = next((tensor for _, tensor in tensors(output)), None)
            walk.output = None if first is None else first.clone()
        for index, walk in enumerate(self._open):
            walk.returned(place, given, output, before[index] if index < len(before) else 0)

    def around(self, blocks: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The modules that ran before the first and after the last block, outermost ones."""
        first, last = self._order.index(blocks[0]), len(self._order) - 1
        last -= self._order[::-1].index(blocks[-1])

        def outer(names: list[str]) -> tuple[str, ...]:
            outside = [
                name
                for name in dict.fromkeys(names)
                if name
                and not any(block == name or block.startswith(f"{name}.") for block in blocks)
                and not any(name.startswith(f"{block}.") for block in blocks)
            ]
            return tuple(
                name
                for name in outside
                if not any(name.startswith(f"{other}.") for other in outside if other != name)
            )

        return outer(self._order[:first]), outer(self._order[last + 1 :])
