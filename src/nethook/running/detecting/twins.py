"""Networks that are like the trained one, are called after the training, and were never trained.

A script that reads a checkpoint and forgets to give it to the new network evaluates random weights.
Such a network was made by its constructor, was filled by no `load_state_dict`, and has nothing in
common with the weights that were trained: not a copy, an average, or another one in training.
One that was loaded, and is asked in training mode, is a twin of another kind: its dropout drops and
its batch norm judges each sample by its batch.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    import torch
    from torch import nn

_FEWEST: Final = 32
"""Elements of a weight from which on it is compared."""
_MOST: Final = 4096
_ALIKE: Final = 0.3
"""Correlation from which on two weights have something to do with each other."""


class Twins:
    """Networks of the kind of those that are followed, and how often these had stepped then."""

    def __init__(self) -> None:
        self._trained: list[weakref.ref[nn.Module]] = []
        self._met: list[tuple[weakref.ref[nn.Module], weakref.ref[nn.Module], int]] = []
        self._kinds: list[tuple[_Kind, weakref.ref[nn.Module]]] = []
        self._asked: list[_Asked] = []

    def follow(self, roots: Iterable[nn.Module]) -> None:
        """These are trained."""
        for root in roots:
            self._trained.append(weakref.ref(root))
            self._kinds.append((_kind(root), weakref.ref(root)))

    def meet(self, roots: Iterable[nn.Module]) -> None:
        """These are called without a gradient, for the first time, and are not followed."""
        for root in roots:
            for reference in self._trained:
                trained = reference()
                if trained is None or trained is root or not _is_like(root, trained):
                    continue
                if _is_fresh(root) and not _are_related(root, trained):
                    self._met.append((weakref.ref(root), reference, _writes(trained)))

    def meet_loaded(self, roots: Iterable[nn.Module], held: Container[int]) -> None:
        """These are called for the first time, with a gradient or without.

        Arguments:
            roots: the networks.
            held: ids of the parameters that optimizers have.
        """
        for root in roots:
            if any(id(one) in held for one in root.parameters()):
                continue  # it is trained further
            layers = _layers_with_modes(root)
            if not (layers and _weights(root) and _is_filled(root)):
                continue
            kind = _kind(root)
            for known, reference in self._kinds:
                trained = reference()
                if known != kind or trained is root:
                    continue
                writes = -1 if trained is None else _writes(trained)
                self._asked.append(_Asked(weakref.ref(root), reference, writes, layers))
                break

    def in_training_mode(self) -> list[dict[str, Any]]:
        """Those that were loaded, were called after the training, and were never switched."""
        told = []
        for asked in self._asked:
            root, trained = asked.root(), asked.trained()
            if root is not None and not root.training:
                continue
            if asked.writes >= 0 and (trained is None or _writes(trained) != asked.writes):
                continue  # a teacher beside the one that is trained
            told.append({"layers": list(asked.layers)})
        return told

    def evaluated(self) -> list[dict[str, Any]]:
        """Those that were called after the last step of the network that they are like."""
        told = []
        for _, reference, writes in self._met:
            trained = reference()
            if trained is not None and _writes(trained) == writes:
                told.append({"kind": type(trained).__name__, "weights": _count(trained)})
        return told


_Kind = tuple[type, tuple[tuple[str, tuple[int, ...]], ...]]


class _Asked(NamedTuple):
    """A loaded network, at its first call."""

    root: weakref.ref[nn.Module]
    trained: weakref.ref[nn.Module]
    writes: int  # of the trained one's weights so far; -1 where it was gone
    layers: tuple[str, ...]


def _kind(root: nn.Module) -> _Kind:
    shapes = tuple((name, tuple(one.shape)) for name, one in root.named_parameters())
    return type(root), shapes


def _layers_with_modes(root: nn.Module) -> tuple[str, ...]:
    """The layers in training mode that do something else in evaluation."""
    from nethook.kinds.modules import DIFFERS_IN_EVALUATION

    return tuple(
        name
        for name, module in root.named_modules()
        if module.training and isinstance(module, DIFFERS_IN_EVALUATION)
    )


def _is_filled(root: nn.Module) -> bool:
    from nethook.hooks.process.origins import was_filled

    return all(was_filled(weight) for _, weight in _weights(root))


def _weights(root: nn.Module) -> list[tuple[str, torch.Tensor]]:
    return [
        (name, weight)
        for name, weight in root.named_parameters()
        if weight.dim() > 1 and weight.numel() >= _FEWEST and weight.is_floating_point()
    ]


def _is_like(root: nn.Module, trained: nn.Module) -> bool:
    """Whether both have the same weights by name and shape."""
    if type(root) is not type(trained):
        return False
    shapes = [[(name, tuple(weight.shape)) for name, weight in one.named_parameters()]
              for one in (root, trained)]  # fmt: skip
    return shapes[0] == shapes[1] and bool(_weights(root))


def _is_fresh(root: nn.Module) -> bool:
    """Whether all weights are what a constructor has made, as far as is known."""
    from nethook.hooks.process.origins import was_filled, was_registered

    return all(was_registered(weight) and not was_filled(weight) for _, weight in _weights(root))


def _are_related(root: nn.Module, trained: nn.Module) -> bool:
    """Whether any weight of one is like that of the other."""
    pairs = zip(_weights(root), _weights(trained), strict=True)
    return any(_alike(one, other) for (_, one), (_, other) in pairs)


def _alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    from nethook.stats.native import readable

    if not (readable.is_readable(one) and readable.is_readable(other)):
        return True  # nothing is said of what cannot be read here
    first, second = (tensor.detach().reshape(-1)[:_MOST].double() for tensor in (one, other))
    first, second = first - first.mean(), second - second.mean()
    size = float((first.square().sum() * second.square().sum()).sqrt())
    near = max(_ALIKE, 4 / len(first) ** 0.5)
    return not size > 0 or abs(float((first * second).sum())) > near * size


def _writes(trained: nn.Module) -> int:
    from nethook.torch_private import version_of

    return sum(version_of(weight) for _, weight in _weights(trained) if not weight.is_inference())


def _count(trained: nn.Module) -> int:
    return len(_weights(trained))
