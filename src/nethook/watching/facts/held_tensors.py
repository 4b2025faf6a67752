"""What each optimizer holds: parameters of the models, leaves of graphs, or tensors of neither."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any, Final

import torch
from torch import nn
from torch.optim import Optimizer

from nethook.hooks.process.origins import line_of_optimizer, optimizers_made
from nethook.watching.facts.holders import holders
from nethook.watching.loop.optimizers import Optimizers

SHOWN: Final = 64
"""Optimizers that are written down."""


class TensorSet:
    """Tensors that were met, told by what they are and not by what they contain."""

    def __init__(self) -> None:
        self._met: dict[int, weakref.ref[torch.Tensor]] = {}

    def add(self, tensor: torch.Tensor) -> None:
        """One more, which is not kept alive."""
        if tensor not in self:
            self._met[id(tensor)] = weakref.ref(tensor)

    def __contains__(self, tensor: object) -> bool:
        met = self._met.get(id(tensor))
        return met is not None and met() is tensor


class HeldTensors:
    """The optimizers of one watch, and all others that are known.

    Arguments:
        models: the watched models by name.
        optimizers: those that hold parameters of theirs, and others that step.
    """

    def __init__(self, models: Mapping[str, nn.Module], optimizers: Optimizers) -> None:
        self._kinds = {type(model).__name__ for model in models.values()}
        self._optimizers = optimizers
        self.reached = TensorSet()
        """Leaves of any graph."""
        self.owned = TensorSet()
        """What the models had as a parameter, at any look."""
        self._elsewhere: dict[int, bool] = {}
        self._told: dict[int, tuple[weakref.ref[Optimizer], dict[str, Any]]] = {}

    def ids(self) -> set[int]:
        """The ids of all tensors that an optimizer has."""
        return {id(tensor) for optimizer in self._alive() for tensor in _held_by(optimizer)}

    def _alive(self) -> dict[Optimizer, int]:
        """Every optimizer that is known and there, with its steps."""
        return dict.fromkeys(optimizers_made(), 0) | dict(self._optimizers.steps_of_all())

    def note(self, names: Mapping[int, str], *, search: bool) -> None:
        """A graph was walked.

        Arguments:
            names: the addresses of the models' parameters, by id.
            search: whether to look for the networks of what is in no graph, which takes some ten
                milliseconds.
        """
        alive = self._alive()
        outside = [
            tensor
            for optimizer in alive
            for tensor in _held_by(optimizer)
            if id(tensor) not in names
        ]
        orphans = {id(tensor) for tensor in outside if tensor in self.owned}
        if search:
            unreached = {id(tensor) for tensor in outside if tensor not in self.reached}
            orphans |= self._orphans(unreached - orphans)
        for optimizer, steps in alive.items():
            held = _held_by(optimizer)
            self._told[id(optimizer)] = weakref.ref(optimizer), {
                "type": type(optimizer).__name__, "line": line_of_optimizer(optimizer),
                "steps": steps, "parameters": len(held),
                "reached": sum(tensor in self.reached for tensor in held),
                "of_models": sum(id(tensor) in names for tensor in held),
                "orphans": sum(id(tensor) in orphans for tensor in held),
            }  # fmt: skip

    def _orphans(self, unreached: set[int]) -> set[int]:
        """Those that are in no network, or in one like a watched one: the model before it."""
        new = unreached - self._elsewhere.keys()
        if new:
            found = holders({}, new, new)
            for key in new:
                self._elsewhere[key] = key in found and found[key].kind not in self._kinds
        return {key for key in unreached if not self._elsewhere[key]}

    def facts(self) -> list[dict[str, Any]]:
        """What is known of all of them, also of those that are gone by now."""
        for reference, facts in self._told.values():
            steps = self._optimizers.steps_of(reference)
            if steps is not None:
                facts["steps"] = steps
        return [dict(facts) for _, facts in self._told.values()][:SHOWN]


def _held_by(optimizer: Optimizer) -> list[torch.Tensor]:
    groups: Any = getattr(optimizer, "param_groups", None)
    return [tensor for group in groups or () for tensor in group["params"]]
