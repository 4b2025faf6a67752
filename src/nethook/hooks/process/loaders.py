"""Seeing the batches that data loaders hand out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nethook.hooks.hook import Hook, Owner
from nethook.hooks.wrapped import WrappedFunction
from nethook.torch_private import (
    collates,
    dataset_of_loader,
    loader_iterator,
    sampler_of_loader,
)

Seen = Callable[[Any, Any, bool, Any], None]
"""`seen(sampler, dataset, collated, batch)`: the sampler of batches; whether samples are put
together."""


class LoaderBatches:
    """A handle: `seen` is told of every batch that a `DataLoader` hands out. May not raise."""

    def __init__(self, owner: Owner, seen: Seen) -> None:
        wrapper = _OnNext(owner, "DataLoader", seen)
        self._handle = (
            WrappedFunction(loader_iterator, "__next__", wrapper, on=False)
            if "__next__" in vars(loader_iterator)
            else None
        )

    def put_on(self) -> None:
        """From now on."""
        if self._handle is not None:
            self._handle.put_on()

    def remove(self) -> None:
        """No more; `put_on` puts it on again."""
        if self._handle is not None:
            self._handle.remove()


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
