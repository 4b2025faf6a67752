"""The oracle: values and gradients taken with hooks as one would write them by hand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from tests.zoo.compare import Snapshot, snapshot
from tests.zoo.walk import held, modules_of, paired, tensors_in

__all__ = ["HandCall", "HandTape", "Kept", "hand_hooks"]


@dataclass
class Kept:
    """A value whose tensors are held themselves, with how often each had been written by then."""

    value: Any
    versions: dict[int, int]

    @classmethod
    def of(cls, value: object) -> Kept:
        """Hold a value."""
        tensors = [tensor for tensor in tensors_in(value) if not tensor.is_inference()]
        return cls(held(value), {id(tensor): tensor._version for tensor in tensors})

    @property
    def untouched(self) -> bool:
        """Whether nobody has written to any of the tensors since."""
        tensors = {id(tensor): tensor for tensor, _ in paired(self.value, self.value)}
        return all(
            tensors[key]._version == self.versions[key] for key in tensors.keys() & self.versions
        )


@dataclass
class HandCall:
    """One call of one module: its inputs as they came, its output as it left."""

    arguments: Snapshot
    output: Snapshot
    kept_arguments: Kept | None  # the tensors themselves, when asked for
    kept_output: Kept | None


@dataclass
class HandTape:
    """Calls by module name, in order."""

    calls: dict[str, list[HandCall]] = field(default_factory=lambda: defaultdict(list))


@contextmanager
def hand_hooks(model: nn.Module, *, keep: bool = False) -> Iterator[HandTape]:
    """Hook every module of the model by hand; `keep` holds on to the outputs themselves."""
    tape = HandTape()
    handles = []
    for name, module in modules_of(model).items():
        hook = _HandHook(tape.calls[name], module, keep)
        handles.append(module.register_forward_pre_hook(hook.before, with_kwargs=True))
        handles.append(module.register_forward_hook(hook.after, with_kwargs=True))
    try:
        yield tape
    finally:
        for handle in handles:
            handle.remove()


class _HandHook:
    def __init__(self, calls: list[HandCall], module: nn.Module, keep: bool) -> None:
        self._calls = calls
        self._module = module
        self._keep = keep
        self._pending: list[tuple[Snapshot, Kept | None]] = []

    def before(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        if self._counts(module):
            self._pending.append(self._take((args, kwargs)))

    def after(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if self._counts(module):
            arguments, kept_arguments = self._pending.pop()
            value, kept = self._take(output)
            self._calls.append(HandCall(arguments, value, kept_arguments, kept))

    def _take(self, value: object) -> tuple[Snapshot, Kept | None]:
        return snapshot(value, values_only=True), Kept.of(value) if self._keep else None

    def _counts(self, module: nn.Module) -> bool:
        # A replica shares the table of hooks and stands for the module; a deep copy has its own,
        # and is another module. A checkpoint runs its block a second time inside of the backward
        # pass: that is no call by the user.
        ours = module._forward_hooks is self._module._forward_hooks
        return ours and torch._C._current_graph_task_id() == -1
