"""How a tensor that passes by is kept.

A lazy copy (copy-on-write) costs no memory until one of the two is written, and then the captured
one keeps its value. Where torch cannot make one (sparse and nested layouts, memory shared between
processes, tensors inside a graph that the user wants to keep), a reference is kept with the
tensor's version, and reading it after a write is an error. Memory that others may hold as well (a
numpy array, another library through DLPack, further views) is copied at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

import torch

from nethook.addresses.nested import map_tensors
from nethook.errors import OverwrittenError
from nethook.hooks.autograd.compact import compact_clone, compactly
from nethook.hooks.autograd.lazy_copy import cheap_copy, lazy_copy
from nethook.hooks.layouts.dtensor import arrived, is_dtensor
from nethook.hooks.modes import quiet, unnoticed
from nethook.hooks.ops.mode import unseen
from nethook.torch_private import dispatch_modes, dual_level, function_modes, version_of
from nethook.tracing.objects import Held, copier, refuse

_Tensor = torch.Tensor

Keep = Callable[[torch.Tensor], Any]


class Keeper(Protocol):
    """What keeps one tensor after another, for one set of options."""

    def __call__(self, tensor: torch.Tensor, /) -> Any:
        """What is kept of a tensor, whatever it is and whatever modes are on."""

    @property
    def plainly(self) -> Keep:
        """The same for plain tensors while no mode is on: it does not ask again."""


class Reference:
    """A tensor that others may write to, and the version it had when it was captured."""

    __slots__ = ("tensor", "version")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        try:
            self.version: int | None = version_of(tensor)
        except RuntimeError:  # an inference tensor has none: a write to it cannot be noticed
            self.version = None

    def read(self, what: str) -> torch.Tensor:
        """The tensor, if nobody has written to it since."""
        with quiet():
            written = 0 if self.version is None else version_of(self.tensor) - self.version
        if written:
            raise OverwrittenError(
                f"{what} was captured by reference and has been written in place since "
                f"({written} times), so its value is gone. "
                'Trace with copy="now".'
            )
        return self.tensor


class Snapshot(Reference):
    """A reference with a copy beside it, which is read once somebody has written to the tensor."""

    __slots__ = ("_copy",)

    def __init__(self, tensor: torch.Tensor, copy: Keep) -> None:
        self._copy = copy(tensor)
        self.tensor = tensor
        self.version = _ask(_version, tensor)

    def read(self, what: str) -> torch.Tensor:
        """The very tensor, or the copy if somebody has written to it since."""
        same = self.version is not None and self.version == _ask(_version, self.tensor)
        return self.tensor if same else self._copy


def keeper(
    *,
    copy: bool | None,
    detach: bool,
    device: torch.device | str | None,
    dtype: torch.dtype | None,
    transform: Callable[[torch.Tensor], Any] | None,
) -> Keeper:
    """The function that keeps one tensor, for one set of options."""
    own = _WAYS[copy, detach]
    if device is None and dtype is None and transform is None:
        return own

    def moved(tensor: torch.Tensor) -> Any:
        cast = dtype if dtype is not None and tensor.is_floating_point() else None
        return own.plainly(compactly(lambda stored: stored.to(device=device, dtype=cast), tensor))

    keep_moved = _Unnoticed(moved)
    if transform is None:
        return keep_moved
    give = own if copy else _WAYS[None, detach]
    return _Transformed(give, transform, keep_moved)


@functools.cache
def snapshots(*, copy: bool = False, detach: bool = False, itself: bool = False) -> Keep:
    """The function that keeps one tensor so that it can be read whatever was written to it since.

    Arguments:
        copy: whether it is copied at once; a lazy copy is made otherwise.
        detach: whether it is taken out of its graph.
        itself: whether the tensor itself is given back as long as nobody writes to it. That is done
            for tensors in a graph in any case, unless one of the other options is set:
            `torch.autograd.grad` can be taken of no other.
    """
    own: Keep = _Tensor.clone if copy else cheap_copy
    own_copy = _Unnoticed((lambda tensor: own(tensor.detach())) if detach else own)
    if itself:
        return lambda tensor: Snapshot(tensor, own_copy)
    if copy or detach:
        return own_copy

    def kept(tensor: torch.Tensor) -> Any:
        in_graph = _ask(_requires_grad, tensor)
        return Snapshot(tensor, own_copy) if in_graph else own_copy(tensor)

    return kept


def _ask(question: Keep, tensor: torch.Tensor) -> Any:
    """What a tensor says of itself, unnoticed by modes and tensor subclasses of the user's."""
    if type(tensor) is _Tensor and not function_modes() and not dispatch_modes():
        return question(tensor)  # the hot path
    with quiet():
        return question(tensor)


def _requires_grad(tensor: torch.Tensor) -> bool:
    return tensor.requires_grad


def _version(tensor: torch.Tensor) -> int | None:
    return None if tensor.is_inference() else version_of(tensor)


class _Transformed:
    """Keeps what a function of the user's makes of a tensor."""

    def __init__(self, give: Keep, transform: Callable[[torch.Tensor], Any], keep: Keep) -> None:
        self._give = give
        self._transform = transform
        self._keep = keep

    def __call__(self, tensor: torch.Tensor) -> Any:
        # What it is given is a copy, mostly a lazy one: writing to it cannot reach the network.
        given = self._give(tensor)
        with unseen():
            value = self._transform(given.tensor if isinstance(given, Reference) else given)
        return self._keep(value) if isinstance(value, torch.Tensor) else value

    @property
    def plainly(self) -> Keep:
        return self


class _Unnoticed:
    """Keeps a tensor hidden from modes and tensor subclasses of the user's."""

    __slots__ = ("plainly",)

    def __init__(self, plainly: Keep) -> None:
        self.plainly = plainly

    def __call__(self, tensor: torch.Tensor) -> Any:
        if type(tensor) is _Tensor and not function_modes() and not dispatch_modes():
            return self.plainly(tensor)  # the hot path
        return _special(self.plainly, tensor)


def _special(keep: Keep, tensor: torch.Tensor) -> Any:
    """A tensor that is a subclass, or is met while a mode is on."""
    tensor = arrived(tensor)
    if is_dtensor(tensor):
        # A wrapper around local tensors has no memory of its own that a lazy copy could share.
        lazy = keep in (_lazy_detached, _lazy_unless_in_graph)
        with quiet():
            return tensor.detach().clone() if lazy else keep(tensor)
    return unnoticed(keep, tensor)


def keep_value(keep: Keep, value: Any) -> Any:
    """A nested value with each tensor kept, in containers that nobody else can change.

    Objects that are no containers are copied with the tensors in them; where a function of the
    user's makes tensors smaller, keeping whole objects beside them would be for nothing.
    """
    if type(value) is _Tensor:
        return keep(value)
    other = copier(refuse if isinstance(keep, _Transformed) else keep)
    return map_tensors(keep, value, other, fresh=True, attributes="map")


def read_value(value: Any, what: str) -> Any:
    """A nested value as it was captured; raises where a part of it was overwritten."""
    if type(value) is torch.Tensor:
        return value
    if isinstance(value, Reference):
        return value.read(what)
    return map_tensors(_same, value, lambda each: _read(each, what), attributes="map")


def held_tensors(value: Any) -> list[torch.Tensor]:
    """Every tensor that a kept value holds."""
    held: list[torch.Tensor] = []

    def note(each: Any) -> Any:
        if isinstance(each, torch.Tensor | Reference):
            held.append(each.tensor if isinstance(each, Reference) else each)
        return each

    map_tensors(note, value, note)
    return held


def _lazy_detached(tensor: torch.Tensor) -> Any:
    if dual_level() >= 0:
        # A lazy copy lies outside the graph, but inside forward-mode AD it would have the tangent.
        tensor = tensor.detach()
    copied = lazy_copy(tensor)
    return _not_lazy(tensor) if copied is None else copied


def _lazy_unless_in_graph(tensor: torch.Tensor) -> Any:
    if tensor.requires_grad:
        return Reference(tensor)  # a copy would lie outside the graph that the user wants to keep
    copied = lazy_copy(tensor)
    return _not_lazy(tensor) if copied is None else copied


def _not_lazy(tensor: torch.Tensor) -> Any:
    """Where torch can make no lazy copy."""
    alias = tensor.detach()
    return compact_clone(alias) if alias.is_inference() else Reference(alias)


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _read(member: Any, what: str) -> Any:
    if isinstance(member, Reference):
        return member.read(what)
    if isinstance(member, Held):
        return member.read(dict.fromkeys((Reference, Snapshot), lambda kept: kept.read(what)))
    return member


_WAYS: dict[tuple[bool | None, bool], _Unnoticed] = {
    (None, True): _Unnoticed(_lazy_detached),
    (None, False): _Unnoticed(_lazy_unless_in_graph),
    (True, True): _Unnoticed(lambda tensor: compact_clone(tensor.detach())),
    (True, False): _Unnoticed(compact_clone),
    (False, True): _Unnoticed(lambda tensor: Reference(tensor.detach())),
    (False, False): _Unnoticed(Reference),
}
"""How a tensor is kept: by `copy` (None is lazily, True now, False by reference) and `detach`."""
