"""Changing parameters and bringing them back bit for bit."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import nn

from nethook.addresses.lookup import get_parameter
from nethook.addresses.patterns import Pattern, find_parameters
from nethook.addresses.tree import ParameterSite, Tree
from nethook.editing.entries import Entry
from nethook.errors import EditError
from nethook.hooks.autograd.lazy_copy import cheap_copy
from nethook.torch_private import buffers_of, data_address, parameters_of


def set_parameter(model: nn.Module, name: str, value: torch.Tensor | float) -> None:
    """Writes a value into a parameter or buffer. The tensor stays the same object.

        nethook.set_parameter(model, "fc1.bias", torch.zeros(512))

    A number fills it. The value is cast to the parameter's type and device. Written through
    `.data`: a graph that was built before can still be differentiated.

    Raises:
        NoSuchSiteError: where the model has no such parameter.
        EditError: where the shapes differ.
    """
    tensor = get_parameter(model, name)
    if not isinstance(value, torch.Tensor):
        tensor.data.fill_(value)
        return
    if value.shape != tensor.shape:
        raise EditError(
            f"`value` must have the shape of {name!r}, {tuple(tensor.shape)}; got "
            f"{tuple(value.shape)}. A number fills the whole parameter."
        )
    tensor.data.copy_(value.detach())


@contextmanager
def preserve(model: nn.Module, *patterns: Pattern) -> Iterator[None]:
    """Brings parameters and buffers back, bit for bit, when a block ends, however it ends.

        with nethook.preserve(model, "fc*"):
            nethook.get_parameter(model, "fc1.weight").data.mul_(2)

    Arguments:
        model: any `nn.Module`.
        patterns: which parameters, as in `select(..., params=True)`; a pattern that names a module
            means everything below it. None given means all.

    A parameter that was replaced by another object comes back as the object it was. Values are
    restored through `.data`: a graph that was built before the block can still be differentiated.

    Cost: lazy copies, so memory only for what the block writes to.
    """
    tree = Tree(model)
    index = tree.parameters()
    if patterns:
        sites = [site for site, _ in find_parameters(tree, index, patterns).values()]
    else:
        sites = index.sites
    kept = [_KeptParameter(tree, site) for site in sites]
    try:
        yield
    finally:
        for parameter in kept:
            parameter.restore()


class _KeptParameter:
    """A parameter as it was: the object, its value, and where it was registered."""

    def __init__(self, tree: Tree, site: ParameterSite) -> None:
        self._tensor = site.tensor
        self._value = cheap_copy(site.tensor, detach=True)
        self._registered_in = [
            (own, key)
            for module in [*tree.modules, *(wrapper for _, wrapper in tree.wrappers)]
            for own in cast(list[dict[str, Any]], [parameters_of(module), buffers_of(module)])
            for key, value in own.items()
            if value is site.tensor
        ]

    def restore(self) -> None:
        for own, key in self._registered_in:
            own[key] = self._tensor
        # The value comes back in the memory that the parameter has now, where it fits: others
        # may hold that memory. Two that still share it were not written, and need no copy.
        now = self._tensor.data
        if (
            now.shape != self._value.shape
            or now.dtype != self._value.dtype
            or now.device != self._value.device
        ):
            self._tensor.data = self._value.clone()
        elif not _share_memory(now, self._value):
            self._tensor.data.copy_(self._value)


class ChangedParameter:
    """A handle: a parameter that holds another value until it is removed.

    The old value is set aside, not copied, so it comes back as it was, in the memory it was in.
    """

    __slots__ = ("_old", "_tensor")

    def __init__(self, site: ParameterSite, entries: list[Entry]) -> None:
        self._tensor: torch.Tensor | None = site.tensor
        self._old = value = site.tensor.data
        owner = site.owners[0].module if site.owners else None
        turned = value.ndim >= 2 and inputs_come_first(owner)
        for entry in entries:
            seen = value.transpose(0, 1) if turned else value
            # A copy: an edit may write to what it is given, and the old memory comes back as it is.
            new = entry.on(seen.clone(), site.address, 0)
            if not isinstance(new, torch.Tensor) or new.shape != seen.shape:
                came = tuple(new.shape) if isinstance(new, torch.Tensor) else type(new).__name__
                raise EditError(
                    f"the edit at {entry.what} returned {came} for {site.address!r}; it must be a "
                    f"tensor of shape {tuple(seen.shape)}."
                )
            value = new.transpose(0, 1) if turned else new
        site.tensor.data = value.to(self._old.device, self._old.dtype).contiguous()

    def remove(self) -> None:
        """Puts the old value back. A second call does nothing."""
        if self._tensor is not None:
            self._tensor.data = self._old
            self._tensor = None


def inputs_come_first(owner: nn.Module | None) -> bool:
    """Whether a layer lays its weight out as (inputs, outputs) and not as (outputs, inputs)."""
    library = sys.modules.get("transformers.pytorch_utils")
    conv1d = () if library is None else (library.Conv1D,)
    transposed = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
    return isinstance(owner, (nn.Embedding, nn.EmbeddingBag, *transposed, *conv1d))


def _share_memory(one: torch.Tensor, two: torch.Tensor) -> bool:
    try:
        # Reading `data_ptr()` would part a lazy copy from its original; this does not.
        same = data_address(one) == data_address(two)
        return same and one.stride() == two.stride()
    except RuntimeError:
        return False
