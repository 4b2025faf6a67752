"""The operations of the first training call, in order of execution, and which took whose result."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Final

import torch
from torch import nn

from nethook.addresses.nested import tensors
from nethook.hooks.attachment import Attachment
from nethook.hooks.modes import quiet
from nethook.hooks.ops.consumer import Op, OpConsumer
from nethook.kinds.operations import LINEAR, LINEAR_BY_A_CONSTANT, LINEAR_IN_ONE
from nethook.stats.native import readable
from nethook.torch_private import first_element
from nethook.watching.journal import Journal
from nethook.watching.recorder import Recorder

MOST: Final = 4000
"""Operations that are written down."""


class OpOrder(OpConsumer, Recorder):
    """Writes down the operations of one training call.

    Arguments:
        journal: where they go.
        prefix: of the addresses of this model.
        hooks: that watch its operations; they go when the first step has ended.
        op_lists: those of all models by name, which are told together.
    """

    rests = ("call_begins",)

    def __init__(
        self, journal: Journal, prefix: str, hooks: Attachment, op_lists: dict[str, Any]
    ) -> None:
        self._journal = journal
        self._op_lists = op_lists
        self._prefix = prefix
        self._hooks: Attachment | None = hooks
        self._off = False
        self._ops: list[dict[str, Any]] = []
        self._made: dict[int, tuple[weakref.ref[torch.Tensor], int]] = {}
        self._given: set[int] = set()  # ids of what the model is called with, during the call
        self._weights: dict[int, str] = {}  # where the memory of each parameter begins, meanwhile

    def call_begins(
        self, model: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """A model is called: what it is given comes from nowhere, and rightly."""
        if self._hooks is not None:
            self._given = {id(tensor) for _, tensor in tensors((args, kwargs))}
            self._weights = {
                begins: name
                for name, parameter in module.named_parameters()
                if parameter.requires_grad and (begins := _memory_of(parameter))
            }

    def after(
        self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        result: Any,
    ) -> Any:  # fmt: skip
        """An operation has run."""
        clock, guard = self._journal.clock, self._journal.guard
        try:
            first = clock.calls.training and clock.forwards == 1 and len(self._ops) < MOST
            if first and not self._off and guard.alive:
                with quiet():
                    self._note(op, args, kwargs, result)
        except Exception as error:
            guard.failed("the order of operations", error, self._turn_off)

    def _note(
        self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:  # fmt: skip
        given = [tensor for _, tensor in tensors((args, kwargs))]
        sources = []
        for tensor in given:
            maker = self._made.get(id(tensor))
            if maker is not None and maker[0]() is tensor:
                sources.append(maker[1])
        number = len(self._ops)
        computed = sum(not isinstance(tensor, torch.nn.Parameter) for tensor in given)
        linear = op.name in LINEAR and not (op.name in LINEAR_IN_ONE and computed > 1)
        linear = linear or (op.name in LINEAR_BY_A_CONSTANT and computed <= 1)
        site = f"{self._prefix}{op.place.address}".rstrip(".")
        entry: dict[str, Any] = {"site": site, "op": op.name, "from": sorted(set(sources))}
        if linear:
            entry["linear"] = True
        odd = [tensor for tensor in given if self._is_odd(tensor)]
        entry["odd"] = bool(odd)
        cut = [self._weights.get(_memory_of(tensor), "") for tensor in odd]
        if any(cut):
            entry["data_of"] = [f"{self._prefix}{name}" for name in cut if name]
        self._ops.append(entry)
        for _, tensor in tensors(result):
            self._made[id(tensor)] = (weakref.ref(tensor), number)

    def _is_odd(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is neither given, nor a parameter, nor the result of an operation."""
        if id(tensor) in self._given or isinstance(tensor, nn.Parameter):
            return False
        maker = self._made.get(id(tensor))
        return tensor.is_floating_point() and (maker is None or maker[0]() is not tensor)

    def _turn_off(self) -> None:
        """Nothing more is written down; the hooks go when the step ends, outside all operations."""
        self._off = True

    def compiled(self) -> None:
        """Something is about to be compiled: if that is the model, there is nothing to see."""
        if self._journal.clock.calls.depth == 0 and not self._ops:
            self._off = True
            self._remove()

    def end_step(self, step: int) -> None:
        """The first step has ended."""
        if self._off:
            self._remove()
        elif self._hooks is not None and self._ops:
            op_lists = self._op_lists
            op_lists[self._prefix.rstrip(".")] = self._ops
            only = op_lists.get("") if len(op_lists) == 1 else None
            self._journal.writer.info(ops=only if only is not None else op_lists)
            self._remove()

    def _remove(self) -> None:
        hooks, self._hooks = self._hooks, None
        self._made.clear()
        self._given = set()
        self._weights = {}
        if hooks is not None:
            hooks.remove()


def _memory_of(tensor: torch.Tensor) -> int:
    """Where the memory of a tensor begins; 0 where that says nothing."""
    return first_element(tensor) if tensor.numel() and readable.is_readable(tensor) else 0
