"""`audit`: every hook on a model, and whose it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from torch import nn

from nethook.addresses.tree import Tree
from nethook.hooks.answering import AnsweringClass
from nethook.hooks.compile.eager import EagerOnceCompiled, Uncounted
from nethook.hooks.hook import Hook
from nethook.hooks.layouts.unhookable import Router
from nethook.hooks.registries import global_hooks, hooks_on, optimizer_hooks
from nethook.hooks.wrapped import wrapped_functions

if TYPE_CHECKING:
    from nethook.text.table import Table


@dataclass(frozen=True)
class HookInfo:
    """One hook: where it is, of what kind, whose, and whether that is nethook.

    `address` is the address of a module or parameter, `*` for a hook on all modules or all
    optimizers, or the name of a torch function. `hook` is the callable itself.
    """

    address: str
    kind: str
    owner: str
    ours: bool
    hook: Any


@dataclass(frozen=True)
class Audit(Sequence[HookInfo]):
    """The hooks on a model: a sequence of `HookInfo`, equal to another of the same hooks."""

    hooks: tuple[HookInfo, ...]

    @property
    def ours(self) -> tuple[HookInfo, ...]:
        """The hooks that are nethook's."""
        return tuple(info for info in self.hooks if info.ours)

    @property
    def others(self) -> tuple[HookInfo, ...]:
        """The hooks that are not nethook's."""
        return tuple(info for info in self.hooks if not info.ours)

    @overload
    def __getitem__(self, index: int) -> HookInfo: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[HookInfo, ...]: ...
    def __getitem__(self, index: int | slice) -> HookInfo | tuple[HookInfo, ...]:
        """The hook (or hooks) at an index."""
        return self.hooks[index]

    def __len__(self) -> int:
        """How many hooks there are."""
        return len(self.hooks)

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()

    def _table(self) -> Table:
        from nethook.text.table import Table

        ours = len(self.ours)
        title = f"{len(self)} hooks, {ours} of nethook" if self.hooks else "no hooks"
        rows = [
            (info.address or '""', info.kind, info.owner, "yes" if info.ours else "")
            for info in self.hooks
        ]
        return Table(title, ("address", "kind", "owner", "nethook's"), rows)


def audit(model: nn.Module) -> Audit:
    """Every hook on a model, and every torch function that nethook has wrapped.

        print(nethook.audit(model))
        before = nethook.audit(model); ...; assert nethook.audit(model) == before

    Lists, in model order, hooks of every kind that torch keeps in reach: forward and backward
    hooks of modules and those around `state_dict`, gradient hooks of parameters and buffers,
    hooks on all modules and on the steps of all optimizers, modules whose `forward` was replaced
    on the instance, and modules whose calls an edit answers. Hooks on autograd nodes and on
    tensors inside a graph belong to the graph, not to the model.

    Returns:
        A sequence of `HookInfo(address, kind, owner, ours, hook)` that prints as a table.
    """
    tree = Tree(model)
    infos: list[HookInfo] = []
    for table in hooks_on(tree):
        infos += [_info(table.address, table.kind, hook) for hook in table.hooks.values()]
    for site in tree.sites:
        replaced = vars(site.module).get("forward")
        if replaced is not None:
            infos.append(_info(site.address, "forward_replaced", replaced))
    for table in global_hooks():
        for hook in table.hooks.values():
            if isinstance(hook, Router):
                infos += _routed(tree, table.kind, hook)
            else:
                infos.append(_info(table.address, table.kind, hook))
    for table in optimizer_hooks():
        infos += [_info(table.address, table.kind, hook) for hook in table.hooks.values()]
    for name, wrapper in wrapped_functions():
        if isinstance(wrapper, AnsweringClass):
            infos += _routed(tree, "answer", wrapper)
        # No model calls what these stand around.
        elif not isinstance(wrapper, EagerOnceCompiled | Uncounted):
            infos.append(_info(name, "function", wrapper))
    return Audit(tuple(infos))


def _routed(tree: Tree, kind: str, router: Router | AnsweringClass) -> Iterator[HookInfo]:
    for module, tap in router.taps():
        site = tree.find_module(module)
        if site is not None:
            yield _info(site.address, kind, tap)


def _info(address: str, kind: str, hook: object) -> HookInfo:
    if isinstance(hook, Hook):
        return HookInfo(address, kind, hook.owner.name, ours=True, hook=hook)
    return HookInfo(address, kind, _name(hook), ours=False, hook=hook)


def _name(hook: object) -> str:
    inner = getattr(hook, "hook", hook)  # torch wraps some hooks (state_dict) in objects of its own
    inner = getattr(inner, "func", inner)  # functools.partial
    named = inner if hasattr(inner, "__qualname__") else type(inner)
    return f"{getattr(named, '__module__', None) or '?'}.{named.__qualname__}"
