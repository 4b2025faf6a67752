"""The oracle: values and gradients taken with hooks as one would write them by hand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from tests.zoo.compare import Snapshot, snapshot
from tests.zoo.walk import tensors_in

__all__ = ["HandCall", "HandTape", "hand_hooks"]


@dataclass
class HandCall:
    """One call of one module: its inputs as they came, its output as it left."""

    arguments: Snapshot
    output: Snapshot
    # The tensors themselves, when asked for: (arguments, output), and how often each of them had
    # been written by then. The arguments are those that the forward was given.
    kept: tuple[object, object] | None = None
    versions: dict[int, int] = field(default_factory=dict)

    def untouched(self, tensor: Tensor) -> bool:
        """Whether nobody has written to one of the kept tensors since."""
        return self.versions[id(tensor)] == tensor._version


@dataclass
class HandTape:
    """Calls by module name, in order."""

    calls: dict[str, list[HandCall]] = field(default_factory=lambda: defaultdict(list))


@contextmanager
def hand_hooks(model: nn.Module, *, keep: bool = False) -> Iterator[HandTape]:
    """Hook every module of the model by hand; `keep` holds on to the outputs themselves."""
    tape = HandTape()
    handles = []
    for name, module in list(model.named_modules()):
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
        self._pending: list[tuple[Snapshot, dict[int, int]]] = []

    def before(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        if self._counts(module):
            values = snapshot((args, kwargs), values_only=True)
            self._pending.append((values, self._versions((args, kwargs))))

    def after(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if self._counts(module):
            arguments, versions = self._pending.pop()
            call = HandCall(arguments, snapshot(output, values_only=True))
            if self._keep:
                call.kept = ((args, kwargs), output)
                call.versions = self._versions(output) | versions
            self._calls.append(call)

    def _versions(self, value: object) -> dict[int, int]:
        if not self._keep:
            return {}
        found = tensors_in(value)
        return {id(each): each._version for each in found if not each.is_inference()}

    def _counts(self, module: nn.Module) -> bool:
        # A copy of the model carries the hooks along, and a checkpoint runs its block a second
        # time inside of the backward pass: neither is a call of this module by the user.
        return module is self._module and torch._C._current_graph_task_id() == -1
