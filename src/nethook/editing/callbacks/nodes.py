"""Callbacks on autograd nodes: they see, and may replace, what flows into a node or out of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.autograd.graph import Node

from nethook.addresses.glob import translate
from nethook.addresses.nested import map_tensors, tensors
from nethook.editing.calling import parameters_of
from nethook.editing.changes import Change, is_among
from nethook.editing.entries import Entry
from nethook.errors import EditError, InPlaceEditError
from nethook.hooks.attachment import register_on_node
from nethook.hooks.autograd.compact import compact_clone
from nethook.hooks.autograd.nodes import made_since
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.threads import elsewhere, taken_off
from nethook.torch_private import is_view, next_node_number, version_of

Gradients = tuple[torch.Tensor | None, ...]


class NodeEntry(Entry):
    """One callback on the nodes of one pattern."""

    __slots__ = ("_call", "before", "kind", "made_names")

    def __init__(
        self, pattern: Any, function: Callable[..., Any], *, before: bool, kind: str | None
    ) -> None:
        self.before = before
        self.kind = kind
        self.made_names: set[str] = (
            set()
        )  # names of nodes that the calls made, if `kind` chose none
        super().__init__("nodes", pattern, (), function)
        assert self.apply is not None  # it is a function
        self._call: Callable[..., Any] = self.apply
        if kind is not None:
            translate(kind)  # one that cannot be read is an error now, not in the forward

    def form(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """How the function is called: with the tuples of gradients, then the site."""
        given = 1 if self.before else 2
        required, takes_site = parameters_of(function)
        if takes_site:
            return lambda *values: function(*values[:-1], site=values[-1])
        if required > given + 1:
            names = "grad_outputs" if self.before else "grad_inputs and grad_outputs"
            raise EditError(
                f"The callback at {self.what} must take {names}, and may take the address of its "
                f"site; got a function that requires {required} arguments. Give the others "
                "defaults."
            )
        return function if required == given + 1 else lambda *values: function(*values[:-1])

    def means_node(self, node: Node) -> bool:
        """Whether a node that a call made is one of those meant."""
        return self.kind is None or translate(self.kind).fullmatch(node.name()) is not None

    def replaced(self, changeable: Gradients, rest: tuple[Gradients, ...], site: str) -> Gradients:
        """The gradients after this callback; the same tuple where nothing changed."""
        self.seen += 1
        self.fired += 1
        # A function that writes in place would reach gradients of others that share this memory.
        given = [_copies(grads) for grads in (changeable, *rest)]
        new = self._call(*given, site)
        if new is None:
            # The copies are new, at version 0: any other number is a write of the function's.
            if any(grad is not None and version_of(grad) for grads in given for grad in grads):
                raise InPlaceEditError(
                    f"the callback at {self.what} wrote to a gradient of {site!r} in place and "
                    "returned None. Return the new gradients instead."
                )
            return changeable
        if isinstance(new, torch.Tensor) and len(changeable) == 1:
            new = (new,)
        self._check(new, changeable, site)
        pairs = zip(changeable, new, strict=True)
        return tuple(was if now is None else now for was, now in pairs)

    def _check(self, new: Any, old: Gradients, site: str) -> None:
        which = "grad_outputs" if self.before else "grad_inputs"
        if not isinstance(new, tuple | list) or len(new) != len(old):
            came = f"{len(new)} of them" if isinstance(new, tuple | list) else type(new).__name__
            raise EditError(
                f"the callback at {self.what} must return None or a tuple of {len(old)} gradients, "
                f"as many as {which} of {site!r} has; got {came}."
            )
        for number, (was, now) in enumerate(zip(old, new, strict=True)):
            if now is None:
                continue
            if was is None:
                raise EditError(
                    f"the callback at {self.what} returned a gradient as number {number} of "
                    f"{which} of {site!r}, where there is none because nothing needs it. Return "
                    "None there."
                )
            if not isinstance(now, torch.Tensor):
                raise EditError(
                    f"the callback at {self.what} returned a {type(now).__name__} as number "
                    f"{number} of {which} of {site!r}; a gradient is a tensor, or None for no "
                    "change."
                )
            if (now.shape, now.dtype, now.device) != (was.shape, was.dtype, was.device):
                raise EditError(
                    f"the callback at {self.what} returned a gradient of shape "
                    f"{tuple(now.shape)}, type {now.dtype} on {now.device} as number {number} of "
                    f"{which} of {site!r}; it must have shape {tuple(was.shape)}, type "
                    f"{was.dtype} on {was.device}."
                )


class ChangeNodes(Change):
    """After a forward: puts hooks on the nodes that the call made.

    Where the output is a view, a leaf or one of the inputs, a copy flows on in its place: a later
    in-place write would otherwise take the node out of the graph, and a node that was made
    elsewhere is not the module's. In the last two cases it is the copy's node that is meant.
    """

    __slots__ = ("begun",)

    def __init__(self, owner: Owner, address: str, entries: list[Entry]) -> None:
        super().__init__(owner, address, entries)
        self.begun: list[int] = []  # where calls began, as numbers of nodes; the innermost last

    def __call__(self, module: nn.Module, args: tuple[Any, ...], *told: Any) -> Any:
        """The output, with copies where it needs them; None where it needs none."""
        if elsewhere(self.owner, module) or taken_off(told):
            return None
        kwargs, output = told
        new = self.put_on((args, kwargs), output)
        return None if new is output else new

    def put_on(self, given: Any, output: Any, written: Sequence[torch.Tensor] = ()) -> Any:
        """Hooks on what made `output` from `given`; those in `written` it returns in place."""
        begin = self.begun.pop() if self.begun else next_node_number()
        if not self.owner.alive:
            return output
        inputs = [tensor for _, tensor in tensors(given)]
        lasts: dict[Node, None] = {}

        def noted(tensor: torch.Tensor) -> torch.Tensor:
            if not tensor.requires_grad:
                return tensor
            # Reading it first also lets torch 2.13 settle the history of views (pytorch#196459).
            made = tensor.grad_fn
            in_place = is_among(tensor, written)
            foreign = made is None or (not in_place and is_among(tensor, inputs))
            copied = foreign or (is_view(tensor) and not in_place)
            flows_on = compact_clone(tensor) if copied else tensor
            last = flows_on.grad_fn if foreign else made
            assert last is not None
            lasts[last] = None
            return flows_on

        new = map_tensors(noted, output)
        self.hook(list(lasts), begin)
        return new

    def hook(self, lasts: list[Node], begin: int) -> None:
        """Registers the entries on the nodes that they mean."""
        entries = [entry for entry in self.entries if isinstance(entry, NodeEntry)]
        inner = made_since(lasts, begin) if any(entry.kind is not None for entry in entries) else []
        by_node: dict[Node, list[NodeEntry]] = {}
        for entry in entries:
            meant = (
                lasts if entry.kind is None else [node for node in inner if entry.means_node(node)]
            )
            if not meant:
                entry.made_names.update(node.name() for node in inner)
            for node in meant:
                by_node.setdefault(node, []).append(entry)
        for node, chosen in by_node.items():
            for before in (True, False):
                own = [entry for entry in chosen if entry.before is before]
                if own:
                    hook = (BeforeNode if before else AfterNode)(self.owner, self.address, own)
                    register_on_node(node, hook, before=before)


class NodesBegin(Hook):
    """Before a forward: notes which number the next node will have."""

    __slots__ = ("_change",)

    def __init__(self, change: ChangeNodes) -> None:
        super().__init__(change.owner, change.address)
        self._change = change

    def __call__(self, module: nn.Module, args: Any, kwargs: Any = None) -> None:
        """Notes that a call begins."""
        if elsewhere(self.owner, module):
            return
        self._change.begun.append(next_node_number())


class BeforeNode(Hook):
    """Before a node runs in a backward pass. It holds no tensor and no node."""

    __slots__ = ("_entries",)

    def __init__(self, owner: Owner, address: str, entries: Sequence[NodeEntry]) -> None:
        super().__init__(owner, address)
        self._entries = entries

    def __call__(self, grad_outputs: Gradients) -> Gradients | None:
        """The new gradients that the node is given; None where nothing changed."""
        return self._changed(grad_outputs, ())

    def _changed(self, changeable: Gradients, rest: tuple[Gradients, ...]) -> Gradients | None:
        if not self.owner.alive:
            return None
        value = changeable
        for entry in self._entries:
            value = entry.replaced(value, rest, self.address)
        return None if value is changeable else value


class AfterNode(BeforeNode):
    """After a node has run in a backward pass."""

    __slots__ = ()

    def __call__(  # type: ignore[override]  # torch tells more after a node than before it
        self, grad_inputs: Gradients, grad_outputs: Gradients
    ) -> Gradients | None:
        """The new gradients that the node passes on; None where nothing changed."""
        return self._changed(grad_inputs, (grad_outputs,))


def _copies(grads: Gradients) -> Gradients:
    return tuple(None if grad is None else grad.clone() for grad in grads)
