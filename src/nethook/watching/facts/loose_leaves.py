"""Leaves that no optimizer has: where each lies, how often it was met, whether code moves it."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

import torch
from torch import nn

from nethook.hooks.process.origins import was_filled, was_registered
from nethook.watching.facts.holders import Holder, holders
from nethook.watching.measuring.witnesses import Witnesses

SHOWN: Final = 64
"""Leaves or networks that are written down."""
_FOLLOWED: Final = 512  # leaves of which weights are remembered


class _Leaf:
    """A leaf that no optimizer had when it was met, with a few of its weights."""

    __slots__ = (
        "elements", "filled", "holder", "last", "looks", "moved", "name", "ref", "since",
        "weights",
    )  # fmt: skip

    def __init__(self, tensor: torch.Tensor, name: str | None, holder: Holder, step: int) -> None:
        self.ref = weakref.ref(tensor)
        self.name = name
        self.holder = holder
        self.elements = tensor.numel()
        self.filled = was_filled(tensor)
        self.looks = 0
        self.since = self.last = step
        self.moved = False
        self.weights = Witnesses([tensor]).some_weights()

    def settle(self) -> None:
        """Looks whether its weights are what they were."""
        tensor = self.ref()
        if tensor is not None and not self.moved:
            self.moved = Witnesses([tensor]).have_changed(self.weights)


class LooseLeaves:
    """Those of one watch.

    Arguments:
        models: the watched models by name.
    """

    def __init__(self, models: Mapping[str, nn.Module]) -> None:
        self._models = models
        self._met: dict[int, _Leaf] = {}
        self.tensors = 0
        """The most leaves of one graph that no module has."""
        self.born: dict[str, Any] = {}
        """Parameters of modules that are gone: layers that a forward has made."""

    def __bool__(self) -> bool:
        return bool(self._met)

    def note(
        self,
        tensors: Sequence[torch.Tensor],
        held: AbstractSet[int],
        names: Mapping[int, str],
        step: int,
    ) -> None:
        """The leaves of a graph.

        Arguments:
            tensors: the leaves.
            held: the ids of all tensors that optimizers have.
            names: the addresses of the models' parameters, by id.
            step: which step it is.
        """
        gone = [key for key, leaf in self._met.items() if leaf.ref() is None or key in held]
        for key in gone:
            del self._met[key]
        loose = [tensor for tensor in tensors if id(tensor) not in held]
        new = [tensor for tensor in loose if id(tensor) not in names and self._leaf(tensor) is None]
        parameters = {id(tensor) for tensor in new if isinstance(tensor, nn.Parameter)}
        found = holders(self._models, set(map(id, new)), parameters) if new else {}
        plain = 0
        self._note_born(new, found, step)
        for tensor in loose:
            leaf, name = self._leaf(tensor), names.get(id(tensor))
            if leaf is None and len(self._met) < _FOLLOWED:
                holder = found.get(id(tensor), Holder("nothing"))
                leaf = self._met[id(tensor)] = _Leaf(tensor, name, holder, step)
            if leaf is not None:
                leaf.looks += 1
                leaf.last = step
                leaf.settle()
                plain += leaf.holder.how == "nothing" and name is None
        self.tensors = max(self.tensors, plain)

    def _note_born(
        self, new: Sequence[torch.Tensor], found: Mapping[int, Holder], step: int
    ) -> None:
        """Counts parameters whose layer is gone before the backward pass begins."""
        gone = [tensor for tensor in new if id(tensor) not in found and was_registered(tensor)]
        if not gone:
            return
        was = self.born
        self.born = {
            "looks": was.get("looks", 0) + 1,
            "parameters": max(was.get("parameters", 0), len(gone)),
            "elements": max(was.get("elements", 0), sum(tensor.numel() for tensor in gone)),
            "shapes": was.get("shapes") or [list(tensor.shape) for tensor in gone[:8]],
            "since": was.get("since", step),
        }

    def _leaf(self, tensor: torch.Tensor) -> _Leaf | None:
        leaf = self._met.get(id(tensor))
        return leaf if leaf is not None and leaf.ref() is tensor else None

    def settle(self) -> None:
        """Looks whether any of them has moved since."""
        for leaf in self._met.values():
            leaf.settle()

    def of_models(self, names: Mapping[int, str]) -> list[dict[str, Any]]:
        """Parameters that the models have now."""
        return [
            {"address": leaf.name, **_course(leaf)}
            for key, leaf in self._met.items()
            if leaf.name is not None and key in names
        ][:SHOWN]

    def of_others(self, *, ended: bool = False) -> list[dict[str, Any]]:
        """What no watched model has, by where it lies.

        With `ended` also what is gone since the last graph: the function that trained has returned.
        """
        groups: dict[Holder, list[_Leaf]] = {}
        for leaf in self._met.values():
            there = ended or leaf.ref() is not None
            if leaf.name is None and leaf.holder.how != "nothing" and there:
                groups.setdefault(leaf.holder, []).append(leaf)
        return [
            {
                "how": holder.how, "where": holder.where, "kind": holder.kind,
                "line": holder.line, "training": holder.training, "parameters": len(leaves),
                **_course(*leaves),
            }
            for holder, leaves in groups.items()
        ][:SHOWN]  # fmt: skip


def _course(*leaves: _Leaf) -> dict[str, Any]:
    """What happened to some leaves."""
    return {
        "elements": sum(leaf.elements for leaf in leaves),
        "looks": max(leaf.looks for leaf in leaves),
        "since": min(leaf.since for leaf in leaves),
        "last": max(leaf.last for leaf in leaves),
        "moved": any(leaf.moved for leaf in leaves),
        "filled": all(leaf.filled for leaf in leaves),
    }
