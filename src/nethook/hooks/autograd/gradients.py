"""Asking a tensor inside a graph for its gradient, where a plain tensor hook would be lost.

The rules, each with a test:

- A leaf outlives its graph, and hooks on it pile up. Such a hook goes when it has fired and the
  scope ends, when it has fired and the leaf is used by a later call, when it fires after the
  scope, and when the one who asked is gone.
- A hook on a view is lost when the view is written in place afterwards (`nn.Linear` on a 3-D
  input returns a view; `y += r` is enough). So the tensor behind the view is asked too, and its
  answer counts where the view was written.
- A view of a module's own input (`nn.Flatten`) cannot be asked that way: other consumers of the
  input would be counted in. Nor can one that shows a part of a tensor, or its conjugate, or a
  parameter. If such a view is written in place before its gradient has come, the gradient is
  lost, and said to be.
- A hook that holds the tensor it hangs on, or one computed from it, keeps the graph alive for
  ever. The hook holds the one who asked weakly.
- After the scope a hook goes on hearing passes through the graph that was built inside it, and dies
  with that graph. On a tensor that the model keeps (`leftovers`) it goes when the scope ends, for
  later graphs will be built on that tensor. If no gradient has come by then, the autograd node that
  made the tensor is asked instead, for the first one that comes.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from nethook.hooks.attachment import register_on_node, register_on_tensor
from nethook.hooks.autograd.leftovers import OnGraph, sweep_at_the_end
from nethook.hooks.hook import Handle, Hook, Owner
from nethook.hooks.modes import quiet
from nethook.hooks.numbers import next_number
from nethook.torch_private import (
    backward_id,
    base_of,
    hooks_of_tensor,
    is_view,
    new_table_of,
    overlaps,
    version_of,
)


class Sink:
    """Where the gradients of one call arrive: by backward pass, then by tensor of the call."""

    __slots__ = ("__weakref__", "_fragile", "keep", "passes")

    def __init__(self, keep: Callable[[torch.Tensor], Any]) -> None:
        self.keep = keep
        self.passes: dict[int, dict[int, Any]] = {}
        self._fragile: dict[int, _Version] = {}  # of views that no other tensor answers for

    def __call__(self) -> Sink:
        """Itself: a hook that torch compiled holds this instead of its weak reference."""
        return self

    def receive(self, key: int, grad: torch.Tensor) -> None:
        """Keeps the gradient of the tensor number `key`, in the backward pass that runs now."""
        if key in self._fragile and self._fragile[key].changed:
            return  # no more than what flowed back to the view from before it was written
        # One backward call is one graph task; its number is what tells passes apart.
        task = backward_id()
        self.passes.setdefault(task, {})[key] = self.keep(grad)

    @property
    def lost(self) -> bool:
        """Whether a tensor was written in place in a way that takes its gradient from us."""
        arrived = {key for grads in self.passes.values() for key in grads}
        return any(self._fragile[key].changed for key in self._fragile.keys() - arrived)


def ask(
    tensor: torch.Tensor,
    key: int,
    sink: Sink,
    owner: Owner,
    address: str,
    given: Iterable[torch.Tensor] = (),
) -> None:
    """Lets the gradient of `tensor` arrive at `sink` as number `key`.

    `given` are the tensors that the module was called with, if `tensor` is what it returned.
    """
    sweep_at_the_end(owner)
    if tensor.is_leaf:
        _OnLeaf.put_on(tensor, owner, address, sink, key)
        return
    register_on_tensor(
        tensor, _OnTensor(owner, address, weakref.ref(sink), key, version_of(tensor))
    )
    if not is_view(tensor):
        return
    version = _Version(tensor)
    base = base_of(tensor)
    assert base is not None
    passed_through = any(argument is base or base_of(argument) is base for argument in given)
    if passed_through or base.is_leaf or not _only_rearranged(tensor, base):
        sink._fragile[key] = version
    else:
        register_on_tensor(
            base, _OnBase(owner, address, weakref.ref(sink), key, version, tensor, base)
        )


def _only_rearranged(view: torch.Tensor, base: torch.Tensor) -> bool:
    """Whether a view shows every element of its base once, and as it is."""
    return (
        not view.is_nested
        and view.numel() == base.numel()
        and view.is_conj() == base.is_conj()
        and view.is_neg() == base.is_neg()
        and not overlaps(view)
    )


def ask_quickly(tensor: torch.Tensor, hook: Hook, given: tuple[Any, ...] = ()) -> None:
    """`hook(grad)` once, for a tensor that a module returned and that dies with its graph.

    What `ask` does, at a quarter of the cost, for hooks that hold no tensor and of whose firing
    nothing depends: of a view that only rearranges its base, the base is asked, so that a write
    into the view takes nothing away; other views lose their gradient when they are written to.
    A leaf is not asked: it would outlive the graph.
    """
    if is_view(tensor):
        base = base_of(tensor)
        if (
            base is not None
            and not base.is_leaf
            and not any(
                argument is base
                or (isinstance(argument, torch.Tensor) and base_of(argument) is base)
                for argument in given
            )
            and _only_rearranged(tensor, base)
        ):
            tensor = base
    node = tensor.grad_fn  # read before anything else: see `register_on_tensor`
    if node is None:
        return
    hooks = hooks_of_tensor(tensor)
    if hooks is None:
        # `Tensor.register_hook` without its handle, which is most of its cost.
        hooks = new_table_of(tensor, node)
    hooks[next_number()] = hook


class _OnTensor(OnGraph):
    __slots__ = ("_written", "key", "sink")

    def __init__(
        self, owner: Owner, address: str, sink: weakref.ref[Sink], key: int, written: int = 0
    ) -> None:
        super().__init__(owner, address)
        self.sink = sink
        self.key = key
        self._written = written  # how often the tensor had been

    def __call__(self, grad: torch.Tensor | None) -> None:
        sink = self.sink()
        # One of several outputs of an operation may get None: nothing flows back through it.
        if sink is not None and grad is not None:
            sink.receive(self.key, grad)

    def taken_off(self, tensor: torch.Tensor) -> None:
        """Asks the node that made the tensor for the gradient that is still awaited."""
        sink = self.sink()
        heard = sink is None or any(self.key in grads for grads in sink.passes.values())
        # After a write the tensor is that of another node.
        if not heard and version_of(tensor) == self._written:
            _OnNode(self, tensor.grad_fn, tensor.output_nr)


class _OnNode(Hook):
    """Before the node that made a tensor runs: passes on one gradient, and goes."""

    __slots__ = ("_handle", "_on_tensor", "_output")

    def __init__(self, on_tensor: _OnTensor, node: Any, output: int) -> None:
        super().__init__(on_tensor.owner, on_tensor.address)
        self._on_tensor = on_tensor
        self._output = output
        self._handle: Handle = register_on_node(node, self, before=True)

    def __call__(self, grads: tuple[torch.Tensor | None, ...]) -> None:
        if grads[self._output] is not None:
            self._handle.remove()
            self._on_tensor(grads[self._output])


class _OnLeaf(_OnTensor):
    __slots__ = ("_fired", "_handle", "_stays")

    def __init__(
        self, leaf: torch.Tensor, owner: Owner, address: str, sink: Sink, key: int
    ) -> None:
        super().__init__(owner, address, weakref.ref(sink, self._sink_is_gone), key)
        self._fired = False
        # Backward may still come after the scope; but on the model nothing may stay.
        self._stays = not isinstance(leaf, nn.Parameter)
        self._handle = register_on_tensor(leaf, self)
        owner.late[id(self)] = self

    @classmethod
    def put_on(cls, leaf: torch.Tensor, owner: Owner, address: str, sink: Sink, key: int) -> None:
        """Registers such a hook on a leaf, and takes off those of earlier calls that are done."""
        for other in list((hooks_of_tensor(leaf) or {}).values()):
            if isinstance(other, cls) and other.owner is owner and other._fired:
                other._take_off()
        cls(leaf, owner, address, sink, key)

    def remove(self) -> None:
        """At the end of the scope: goes, unless a gradient is still awaited."""
        if self._fired or not self._stays:
            self._take_off()

    def __call__(self, grad: torch.Tensor | None) -> None:
        self._fired = True
        super().__call__(grad)
        if not self.owner.alive:
            self._take_off()

    def taken_off(self, tensor: torch.Tensor) -> None:
        """It is a tensor of the model's own, as a parameter is."""
        self._take_off()

    def _sink_is_gone(self, _: object) -> None:
        self._take_off()

    def _take_off(self) -> None:
        self._handle.remove()
        self.owner.late.pop(id(self), None)


class _OnBase(_OnTensor):
    """On the tensor behind a view: answers for the view where that was written in place."""

    __slots__ = ("base_layout", "layout", "version")

    def __init__(
        self,
        owner: Owner,
        address: str,
        sink: weakref.ref[Sink],
        key: int,
        version: _Version,
        view: torch.Tensor,
        base: torch.Tensor,
    ) -> None:
        super().__init__(owner, address, sink, key)
        self.version = version
        offset = view.storage_offset() - base.storage_offset()
        self.layout = (view.size(), view.stride(), offset)
        self.base_layout = (base.size(), base.stride())

    def taken_off(self, tensor: torch.Tensor) -> None:
        """The hook on the view itself is asked instead."""

    def __call__(self, grad: torch.Tensor | None) -> None:
        if grad is None or not self.version.changed:
            return
        with quiet():
            # The view sees the base's elements in another arrangement; so does its gradient.
            arranged = torch.empty_strided(*self.base_layout, dtype=grad.dtype, device=grad.device)
            super().__call__(arranged.copy_(grad).as_strided(*self.layout))


class _Version:
    """The version of a tensor, without its memory: tells whether it was written since."""

    __slots__ = ("_alias", "_seen")

    def __init__(self, tensor: torch.Tensor) -> None:
        # A detached alias shares the version counter; with its data taken away, only that is left.
        self._alias = tensor.detach()
        if not tensor.is_nested:  # torch has no way to take that of a nested tensor away
            self._alias.data = torch.empty(0, device=tensor.device)
        self._seen = version_of(self._alias)

    @property
    def changed(self) -> bool:
        return version_of(self._alias) != self._seen
