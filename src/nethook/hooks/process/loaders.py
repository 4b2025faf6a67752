"""Seeing when data loaders start, and the batches that they hand out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.utils.data import DataLoader

from nethook.hooks.hook import Hook, Owner
from nethook.hooks.wrapped import WrappedFunction, WrappedFunctions
from nethook.torch_private import (
    collates,
    dataset_of_loader,
    loader_iterator,
    sampler_of_loader,
)

Seen = Callable[[Any, Any, bool, Any], None]
"""`seen(sampler, dataset, collated, batch)`: the sampler of batches; whether samples are put
together."""


class LoaderBatches(WrappedFunctions):
    """A handle: `seen` is told of every batch that a `DataLoader` hands out. May not raise."""

    def __init__(self, owner: Owner, seen: Seen) -> None:
        wrapper = _OnNext(owner, "DataLoader", seen)
        there = "__next__" in vars(loader_iterator)
        super().__init__(
            [WrappedFunction(loader_iterator, "__next__", wrapper, on=False)] if there else []
        )


class LoaderStarts(WrappedFunctions):
    """A handle: `started` is told of every `DataLoader` that starts to hand out. May not raise."""

    def __init__(self, owner: Owner, started: Callable[[DataLoader[Any]], None]) -> None:
        wrapper = _OnIter(owner, "DataLoader", started)
        super().__init__([WrappedFunction(DataLoader, "__iter__", wrapper, on=False)])


class _OnIter(Hook):
    __slots__ = ("_started",)

    def __init__(
        self, owner: Owner, address: str, started: Callable[[DataLoader[Any]], None]
    ) -> None:
        super().__init__(owner, address)
        self._started = started

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self.owner.alive and args:
            self._started(args[0])
        return function(*args, **kwargs)


class _OnNext(Hook):
    __slots__ = ("_seen",)

    def __init__(self, owner: Owner, address: str, seen: Seen) -> None:
        super().__init__(owner, address)
        self._seen = seen

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        batch = function(*args, **kwargs)
        if self.owner.alive and args:
            loader = args[0]
            self._seen(
                sampler_of_loader(loader), dataset_of_loader(loader), collates(loader), batch
            )
        return batch
