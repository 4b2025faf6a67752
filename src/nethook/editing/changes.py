"""The hooks of an edit: each changes what passes by, and returns a new value.

Gradients are changed on a tensor of our own: where the output is a view, a leaf or one of the
inputs, a copy flows on in its place. So a later in-place write cannot drop the hook, and what
others do with the input is not changed along.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import torch

from nethook.addresses.inputs import Inputs
from nethook.addresses.nested import map_tensors, tensors
from nethook.editing.catalogue import Edit, clip_norm
from nethook.editing.entries import Entry
from nethook.errors import EditError
from nethook.hooks.attachment import register_on_tensor
from nethook.hooks.autograd.backward_end import when_backward_ends
from nethook.hooks.autograd.compact import compact_clone
from nethook.hooks.autograd.leftovers import sweep_at_the_end
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.ops.mode import unseen
from nethook.hooks.threads import elsewhere, taken_off
from nethook.torch_private import backward_id, is_view, version_of


class Change(Hook):
    """A hook that applies entries in their order. It does nothing once its scope has ended."""

    __slots__ = ("calls", "entries")

    def __init__(self, owner: Owner, address: str, entries: list[Entry]) -> None:
        super().__init__(owner, address)
        self.entries = entries
        self.calls = 0

    def changed(self, value: Any) -> Any:
        """The value after all entries; the same object where none changed it."""
        call = self.calls
        if backward_id() == -1:
            self.calls = call + 1
        for entry in self.entries:
            on = entry.on if entry.path else entry.change
            value = on(value, self.address, call)
        return value

    def next_call(self) -> int:
        """The number of this call; one that is computed again in backward has none of its own."""
        call = self.calls
        if backward_id() == -1:
            self.calls += 1
        return call


class ChangeOutput(Change):
    """After a forward."""

    __slots__ = ()

    def __call__(self, module: Any, args: tuple[Any, ...], output: Any) -> Any:
        """The new output; None where nothing changed."""
        if not self.owner.alive or elsewhere(self.owner, module):
            return None
        new = self.changed(output)
        return None if new is output else new


class ChangeBefore(Change):
    """Before a forward."""

    __slots__ = ()

    def __call__(
        self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
    ) -> Any:
        """The new arguments; None where nothing changed."""
        if not self.owner.alive or elsewhere(self.owner, module) or kwargs is None:
            return None  # without keyword arguments: another thread has taken it off meanwhile
        return self.arguments(args, kwargs)

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The new arguments of one call; None where nothing changed."""
        raise NotImplementedError


class ChangeInput(ChangeBefore):
    """Without a path, an edit is given the only argument, or the only tensor."""

    __slots__ = ()

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The arguments with each entry applied to the one that it means."""
        given = Arguments(args, kwargs)
        call = self.next_call()
        for entry in self.entries:
            given = given.edited(entry, self.address, call)
        return None if given.args is args and given.kwargs is kwargs else (given.args, given.kwargs)


class ChangeCall(ChangeBefore):
    """Gives all arguments at once, as `Inputs`."""

    __slots__ = ()

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the entries make of all arguments."""
        given = Inputs(args, kwargs)
        new = self.changed(given)
        if new is given:
            return None
        if not isinstance(new, Inputs):
            if len(given) != 1:
                raise EditError(
                    f"a callback before {self.address!r} returned one value, and it was called "
                    f"with {len(given)} arguments. Return nethook.inputs(...) with all of "
                    "them."
                )
            new = Inputs((new,)) if args else Inputs((), {next(iter(kwargs)): new})
        return new.args, dict(new.kwargs)


class Arguments:
    """The arguments of a call, in which an edit by path finds its part: `[0]`, `["mask"]`."""

    __slots__ = ("args", "kwargs")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args = args
        self.kwargs = kwargs

    def edited(self, entry: Entry, site: str, call: int) -> Arguments:
        """The arguments with one entry applied."""
        if entry.path:
            by_name = isinstance(entry.path[0].key, str)
            if by_name:
                return Arguments(self.args, entry.on(self.kwargs, site, call))
            return Arguments(entry.on(self.args, site, call), self.kwargs)
        key = self._only(entry, site)
        if isinstance(key, str):
            value = self.kwargs[key]
            new = entry.on(value, site, call)
            return self if new is value else Arguments(self.args, self.kwargs | {key: new})
        value = self.args[key]
        new = entry.on(value, site, call)
        args = (*self.args[:key], new, *self.args[key + 1 :])
        return self if new is value else Arguments(args, self.kwargs)

    def _only(self, entry: Entry, site: str) -> int | str:
        """The only argument, or the only one that is a tensor: its place or its name."""
        given: dict[Any, Any] = dict(enumerate(self.args)) | self.kwargs
        if len(given) != 1:
            given_tensors = [
                k for k, argument in given.items() if isinstance(argument, torch.Tensor)
            ]
            if len(given_tensors) != 1:
                names = ", ".join(f'["{k}"]' if isinstance(k, str) else f"[{k}]" for k in given)
                raise EditError(
                    f"the edit at {entry.what} needs one argument, and {site!r} was called with "
                    f"{names or 'none'}. Name one: {{{entry.pattern!r}: {{'[0]': ...}}}}."
                )
            given = dict.fromkeys(given_tensors)
        key: int | str = next(iter(given))
        return key


class ChangeOutputGradient(Change):
    """After a forward: lets the gradients of its output be changed when they come back."""

    __slots__ = ()

    def __call__(self, module: Any, args: tuple[Any, ...], *told: Any) -> Any:
        """The output with tensors in it that carry hooks; None where none requires a gradient."""
        if not self.owner.alive or elsewhere(self.owner, module) or taken_off(told):
            return None
        kwargs, output = told
        given = [tensor for _, tensor in tensors((args, kwargs))]
        new = self.on_gradients(output, self.entries, given)
        self.calls += 1
        return None if new is output else new

    def on_gradients(self, value: Any, entries: list[Entry], given: list[torch.Tensor]) -> Any:
        """`value` with a hook on the gradient of each tensor that an entry means."""
        paths = iter(tensors(value))

        def hooked(tensor: torch.Tensor) -> torch.Tensor:
            path, _ = next(paths)
            meant = [entry for entry in entries if entry.means(value, path, self.address)]
            for entry in meant:
                entry.note_tensor(requires_grad=tensor.requires_grad)
            if not meant or not tensor.requires_grad:
                return tensor
            # A hook on a leaf or on an input would see the gradients of its other uses as well,
            # and one on a view is dropped by the next write in place.
            if tensor.is_leaf or is_view(tensor) or is_among(tensor, given):
                with unseen():
                    tensor = compact_clone(tensor)
            register_on_tensor(tensor, ChangeGradient(self.owner, self.address, meant, self.calls))
            sweep_at_the_end(self.owner)
            return tensor

        return map_tensors(hooked, value)


class ChangeInputGradient(ChangeBefore, ChangeOutputGradient):
    """Lets the gradients that the module passes back be changed."""

    __slots__ = ()

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Arguments whose tensors are our own: what others do with them is not concerned."""
        given = [tensor for _, tensor in tensors((args, kwargs))]
        by_name = [e for e in self.entries if e.path and isinstance(e.path[0].key, str)]
        by_position = [e for e in self.entries if e.path and e not in by_name]
        both = [entry for entry in self.entries if not entry.path]
        args = self.on_gradients(args, [*both, *by_position], given)
        kwargs = self.on_gradients(kwargs, [*both, *by_name], given)
        self.calls += 1
        return args, kwargs


class ChangeGradient(Hook):
    """When the gradient of a tensor was computed."""

    __slots__ = ("_call", "_entries")

    def __init__(self, owner: Owner, address: str, entries: list[Entry], call: int) -> None:
        super().__init__(owner, address)
        self._entries = entries
        self._call = call

    def __call__(self, grad: torch.Tensor | None) -> torch.Tensor | None:
        """The new gradient, always a tensor of its own; None where nothing changed."""
        if grad is None or not self.owner.alive:
            return None
        value = grad
        for entry in self._entries:
            value = changed_gradient(entry, value, self.address, self._call)
        return None if value is grad else value


class ClipTogether:
    """Shortens the gradients of some parameters to a joint norm when a backward pass has ended."""

    __slots__ = ("_entry", "_parameters", "_waiting")

    def __init__(self, entry: Entry, parameters: list[torch.Tensor]) -> None:
        self._entry = entry
        self._parameters = [weakref.ref(parameter) for parameter in parameters]
        self._waiting = False  # whether the end of the pass that runs now is waited for

    def arrived(self) -> None:
        """A gradient of one of them has come: all will be there when the pass has ended."""
        if not self._waiting:
            self._waiting = True
            when_backward_ends(self._clip)

    def _clip(self) -> None:
        self._waiting = False
        live = [parameter for ref in self._parameters if (parameter := ref()) is not None]
        grads = [parameter.grad for parameter in live if parameter.grad is not None]
        edit = self._entry.edit
        assert isinstance(edit, clip_norm)
        self._entry.seen += 1
        self._entry.fired += 1
        torch.nn.utils.clip_grads_with_norm_(
            live, edit.max_norm, torch.nn.utils.get_total_norm(grads, edit.norm_type)
        )


class JoinClipping(Hook):
    """When the gradient of a parameter was computed that is clipped together with others."""

    __slots__ = ("_together",)

    def __init__(self, owner: Owner, address: str, together: ClipTogether) -> None:
        super().__init__(owner, address)
        self._together = together

    def __call__(self, grad: torch.Tensor) -> None:
        """Notes that a gradient has come."""
        if self.owner.alive:
            self._together.arrived()


class ChangeParameterGradient(ChangeGradient):
    """When the gradient of a parameter was computed; each backward pass is one call."""

    __slots__ = ()

    def __init__(self, owner: Owner, address: str, entries: list[Entry]) -> None:
        super().__init__(owner, address, entries, 0)

    def __call__(self, grad: torch.Tensor | None) -> torch.Tensor | None:
        """The new gradient; None where nothing changed."""
        new = super().__call__(grad)
        self._call += 1
        return new


def changed_gradient(entry: Entry, grad: torch.Tensor, site: str, call: int) -> torch.Tensor:
    """The gradient after one entry; refuses what autograd would choke on, or worse, accept."""
    # A function that writes in place would reach gradients of others that share this memory.
    given = grad if isinstance(entry.edit, Edit) else grad.clone()
    new = entry.change(given, site, call)
    if new is given and (given is grad or not version_of(given)):
        return grad
    if not isinstance(new, torch.Tensor):
        raise EditError(
            f"the edit at {entry.what} returned {type(new).__name__} for the gradient at {site!r}; "
            "it must return a tensor, or None for no change."
        )
    if new.shape != grad.shape or new.dtype != grad.dtype:
        raise EditError(
            f"the edit at {entry.what} returned a gradient of shape {tuple(new.shape)} and type "
            f"{new.dtype} at {site!r}; it must have shape {tuple(grad.shape)} and type "
            f"{grad.dtype}."
        )
    return new


def is_among(tensor: torch.Tensor, others: Sequence[torch.Tensor]) -> bool:
    """Whether a tensor is one of others: the object, not its values."""
    return any(tensor is other for other in others)
