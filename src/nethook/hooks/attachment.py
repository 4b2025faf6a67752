"""Putting hooks on, all or nothing, and taking exactly those off again.

One mechanism serves every kind of hook. An attachment keeps the handles of what it registered and
nothing else, so it holds no module and no graph alive.
"""

from __future__ import annotations

import functools
import time
import weakref
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from nethook.hooks.hook import OUR_FLAG, Handle, Hook, Owner
from nethook.hooks.modes import quiet
from nethook.hooks.numbers import next_number, renumbered
from nethook.hooks.order import Order, note_rest
from nethook.hooks.saving import LeftOut
from nethook.torch_private import (
    GLOBAL_HOOKS,
    Table,
    any_global_hook,
    forward_hooks_of,
    forward_pre_hooks_of,
    global_always_called,
    global_with_kwargs,
    hooks_always_called_of,
    hooks_with_kwargs_of,
    pre_hooks_with_kwargs_of,
)


class Attachment:
    """The hooks of one owner: put on together, taken off together.

        hooks = Attachment(Owner("nethook.trace"))
        with hooks:                         # or hooks.remove(), at any time, any number of times
            hooks.forward(module, tap)
            hooks.tensor(parameter, other_tap)

    A block that raises, also half-way through registering, takes off all that were put on; so
    does the end of the attachment's own life. Hooks of others are never touched.
    """

    __slots__ = ("__weakref__", "_handles", "_left_out", "owner")

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self._handles: list[Handle] = []
        self._left_out: LeftOut | None = None  # from the first hook on a module

    # -- one method per kind of hook ----------------------------------------------------------

    def forward_pre(self, module: nn.Module, hook: Hook) -> None:
        """`hook(module, args, kwargs)` before a module's forward."""
        self._put_on([(forward_pre_hooks_of(module), hook)], [pre_hooks_with_kwargs_of(module)])

    def forward_pre_each(self, hooks: Sequence[tuple[nn.Module, Hook]]) -> None:
        """The same for several modules, none of them twice."""
        tables = [(forward_pre_hooks_of(module), hook) for module, hook in hooks]
        self._put_on(tables, [pre_hooks_with_kwargs_of(module) for module, _ in hooks])

    def forward(
        self,
        module: nn.Module,
        hook: Hook,
        *,
        with_kwargs: bool = False,
        always_call: bool = False,
        resting: Resting | None = None,
    ) -> None:
        """`hook(module, args, output)` after a module's forward.

        With `with_kwargs` it is `hook(module, args, kwargs, output)`; with `always_call` it is
        also called when the forward raises, with None as the output. `resting` can take it off
        for a while.
        """
        flags = []
        if with_kwargs:
            flags.append(hooks_with_kwargs_of(module))
        if always_call:
            flags.append(hooks_always_called_of(module))
        self._put_on([(forward_hooks_of(module), hook)], flags, resting)

    def forward_each(
        self, hooks: Sequence[tuple[nn.Module, Hook]], *, with_kwargs: bool = False
    ) -> None:
        """The same for several modules, none of them twice: for less than half the cost."""
        flags = [hooks_with_kwargs_of(module) for module, _ in hooks] if with_kwargs else []
        self._put_on([(forward_hooks_of(module), hook) for module, hook in hooks], flags)

    def every_forward_pre(self, hook: Hook) -> None:
        """`hook(module, args)` before the forward of any module."""
        self._group().put_on([(GLOBAL_HOOKS["global_forward_pre"], hook)], [])

    def every_forward(
        self, hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
    ) -> None:
        """`hook(module, args, output)` after the forward of any module; options as above."""
        # The handle of `register_module_forward_hook` forgets a flag of its own in torch 2.13.
        # Then torch would take every module for globally hooked for ever.
        flags = [global_with_kwargs] if with_kwargs else []
        if always_call:
            flags.append(global_always_called)
        self._group().put_on([(GLOBAL_HOOKS["global_forward"], hook)], flags)

    def tensor(self, tensor: torch.Tensor, hook: Hook) -> None:
        """`hook(grad)` when the gradient of a tensor or parameter was computed."""
        with quiet():  # also because a lazy module's parameter refuses to be touched otherwise
            self._handles.append(register_on_tensor(tensor, hook))

    def accumulated(self, parameter: torch.Tensor, hook: Hook) -> None:
        """`hook(parameter)` after a gradient was added to a parameter's `.grad`."""
        with quiet():
            self.add(parameter.register_post_accumulate_grad_hook(hook))

    def node(self, node: Any, hook: Hook, *, before: bool = False) -> None:
        """`hook(grad_inputs, grad_outputs)` after an autograd node has run.

        With `before` it is `hook(grad_outputs)`, called before the node runs.
        """
        self._handles.append(register_on_node(node, hook, before=before))

    def optimizer_step(
        self, optimizer: torch.optim.Optimizer, hook: Hook, *, before: bool = False
    ) -> None:
        """`hook(optimizer, args, kwargs)` after an optimizer's step, or before it."""
        register = optimizer.register_step_pre_hook if before else optimizer.register_step_post_hook
        self.add(register(hook))

    def _put_on(
        self,
        hooks: list[tuple[Table, Hook]],
        flags: list[Table],
        resting: Resting | None = None,
    ) -> None:
        if self._left_out is None:
            self._left_out = LeftOut()
        if resting is None:
            self._group().put_on(hooks, flags)
        else:
            if not len(resting):
                self._handles.append(resting)
            resting.put_on(hooks, flags)

    def _group(self) -> _InTables:
        """What the next hooks are put on with: one handle serves those that follow each other."""
        if self._handles and type(self._handles[-1]) is _InTables:
            return self._handles[-1]
        group = _InTables()
        self._handles.append(group)
        return group

    def add(self, handle: Handle) -> None:
        """Takes over a handle that torch or another function of this room made just now."""
        self._handles.append(renumbered(handle) if isinstance(handle, RemovableHandle) else handle)

    # -- taking off ---------------------------------------------------------------------------

    def remove(self) -> None:
        """Takes every hook off, the last one first. A second call does nothing."""
        self.owner.alive = False
        if self.owner.late:
            for late in list(self.owner.late.values()):
                late.remove()
        while self._handles:
            handle = self._handles[-1]
            try:
                handle.remove()
            except Exception:
                self._forget(handle)
                raise
            self._forget(handle)  # not before: an interrupt would leave it on for good
        if self._left_out is not None:
            self._left_out.remove()
            self._left_out = None

    def _forget(self, handle: Handle) -> None:
        if self._handles and self._handles[-1] is handle:
            self._handles.pop()

    def __len__(self) -> int:
        """How many hooks are on."""
        return sum(len(handle) if isinstance(handle, _InTables) else 1 for handle in self._handles)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.remove()

    def __del__(self) -> None:
        if self._handles or self.owner.alive:
            self.remove()

    def __repr__(self) -> str:
        return f"Attachment({self.owner.name}, {len(self)} hooks)"


class _InTables:
    """A handle: hooks in modules' dicts of hooks, and in the dicts that say how they are called.

    Or in the dicts of hooks on every module, which torch keeps in the same form.
    Does what `Module.register_forward_hook` and its handle do, at a fifth of the cost: a trace
    of a thousand layers registers and removes a thousand hooks per forward. The dicts are held
    weakly, for a hook of somebody else's in one may hold the module.
    """

    __slots__ = ("_entries", "_flags")

    def __init__(self) -> None:
        self._entries: list[tuple[weakref.ref[Table], int]] = []
        self._flags: list[tuple[Table, int]] = []

    def put_on(self, hooks: list[tuple[Table, Hook]], flags: list[Table]) -> None:
        """Puts hooks on, all under one number: at most one in each dict."""
        key = next_number()
        for table in flags:
            self._flags.append((table, key))  # first: an interrupt may come in between
            table[key] = OUR_FLAG
        entries = self._entries
        for table, hook in hooks:
            entries.append((weakref.ref(table), key))
            table[key] = hook

    def remove(self) -> None:
        """Takes them off. A second call does nothing."""
        for reference, key in reversed(self._entries):
            table = reference()
            if table is not None:
                table.pop(key, None)
        for flags, key in self._flags:
            flags.pop(key, None)

    def __len__(self) -> int:
        """How many they are."""
        return len(self._entries)


class Resting(_InTables):
    """Hooks on modules that are taken off while there is nothing for them to do, and put back.

    A module with a hook on it takes a few microseconds longer to be called, whatever the hook does.
    Hooks of others keep their place before or behind. Cost: about a microsecond per hook. They are
    all put on by the attachment of one owner.
    """

    __slots__ = ("_hooks", "_orders", "_owner", "awake")

    def __init__(self, owner: Owner) -> None:
        super().__init__()
        self._owner = owner
        self._hooks: list[Hook] = []
        self._orders: list[Order | None] = []  # of each hook, while they rest
        self.awake = True

    def put_on(self, hooks: list[tuple[Table, Hook]], flags: list[Table]) -> None:
        """Puts on further hooks."""
        # One for each entry: those that an interrupt kept from getting one are forgotten.
        self._hooks[len(self._entries) :] = [hook for _, hook in hooks]
        super().put_on(hooks, flags)

    def rest(self) -> None:
        """Takes all of them off."""
        if self.awake:
            self.awake = False
            for reference, key in self._entries:
                table, order = reference(), None
                if table is not None and key in table:  # others may have taken it off
                    order = note_rest(reference, table, key)
                self._orders.append(order)  # first: an interrupt may come in between
                if table is not None:
                    table.pop(key, None)
            for flags, key in self._flags:
                flags.pop(key, None)

    def wake(self) -> None:
        """Puts all of them back, unless their attachment was removed meanwhile."""
        if not self.awake and self._owner.alive:
            for flags, key in self._flags:
                flags[key] = OUR_FLAG
            # Those that an interrupt kept from being taken off have no order, and are on.
            each = zip(self._entries, self._orders, self._hooks, strict=False)
            for (reference, key), order, hook in each:
                table = reference()
                if table is not None:
                    if order is None:
                        table[key] = hook
                    else:
                        order.put_back(table, key, hook)
            self._orders.clear()
            self.awake = True  # not before: what an interrupt has left out is put on the next time

    def remove(self) -> None:
        """Takes them off for good."""
        for (_, key), order in zip(self._entries, self._orders, strict=False):
            if order is not None:
                order.forget(key)
        self._orders.clear()
        super().remove()


def put_last(module: nn.Module, hook: Hook) -> None:
    """Lets a hook after a module's forward run after those that were registered since."""
    hooks: Any = forward_hooks_of(module)
    for key, registered in list(hooks.items()):
        if registered is hook:
            hooks.move_to_end(key)


_TYPICAL_SECONDS = 1.5e-6  # a typical result of the measurement below


@functools.cache
def seconds_of_a_hook() -> float:
    """What a module with a hook on it takes longer to be called, whatever the hook does.

    Measured once in a process, in a few tenths of a millisecond: the least of several tries. Hooks
    on all modules would be called for it, and may be the user's: where there are any, a typical
    number serves.
    """
    if any_global_hook():
        return _TYPICAL_SECONDS
    module = nn.Identity()

    def least() -> float:
        # The least of 12 tries: whatever else the machine does only makes a try longer. Four calls
        # in each, for a single one is near the resolution of the clock.
        took = []
        for _ in range(12):
            start = time.perf_counter()
            for _ in range(4):
                module(None)
            took.append(time.perf_counter() - start)
        return min(took) / 4

    without = least()
    renumbered(module.register_forward_hook(_nothing))
    return max(0.0, least() - without)


def _nothing(*_: object) -> None:
    """A hook that does nothing."""


def register_on_tensor(tensor: torch.Tensor, hook: Hook) -> Handle:
    """`tensor.register_hook`, without the crash that torch 2.13 has in store for some views."""
    # Where an alias of a view was written in place and `grad_fn` was not read since,
    # `register_hook` ends the process with a segmentation fault (pytorch#196459).
    tensor.grad_fn  # noqa: B018
    return renumbered(tensor.register_hook(hook))


def register_on_node(node: Any, hook: Hook, *, before: bool = False) -> Handle:
    """`node.register_hook`, or `register_prehook`. The hook dies with the node, and its graph."""
    return renumbered(node.register_prehook(hook) if before else node.register_hook(hook))
