"""`suspended`: a model without nethook's hooks, for a block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from torch import nn

from nethook.addresses.tree import Tree
from nethook.hooks.answering import AnsweringClass
from nethook.hooks.hook import Hook
from nethook.hooks.layouts.unhookable import Router
from nethook.hooks.ops.watch import ModuleHook
from nethook.hooks.order import merged
from nethook.hooks.registries import HookDict, global_hooks, hooks_on
from nethook.hooks.wrapped import wrapped_functions


@contextmanager
def suspended(model: nn.Module) -> Iterator[None]:
    """Takes every hook of nethook off a model for a block, and puts them back after it.

        with nethook.suspended(model):
            scripted = torch.jit.script(model)

    Hooks of others stay. Each hook comes back to its place among the others'; one whose scope
    was left inside the block does not come back. Hooks that are put on inside the block are not
    concerned. Graphs that were built before keep their gradient hooks.
    """
    tree = Tree(model)
    modules = {id(site.module) for site in tree.sites}
    with ExitStack() as back:
        for table in list(hooks_on(tree)):
            take_off(table, back)
        for table in global_hooks():
            for hook in table.hooks.values():
                if isinstance(hook, Router | ModuleHook):
                    back.callback(_if_alive(hook, hook.take(modules)))
        for _, wrapper in list(wrapped_functions()):
            if isinstance(wrapper, AnsweringClass):
                back.callback(_if_alive(wrapper, wrapper.take(modules)))
        yield


def take_off(table: HookDict, back: ExitStack) -> None:
    """Takes our hooks out of one of torch's dicts, until `back` is closed."""
    ours = {key: hook for key, hook in table.hooks.items() if isinstance(hook, Hook)}
    if not ours:
        return
    order = list(table.hooks)
    options = [{key: flags.pop(key) for key in ours if key in flags} for flags in table.options]
    for key in ours:
        del table.hooks[key]

    def put_back() -> None:
        alive = {key: hook for key, hook in ours.items() if hook.owner.alive}
        hooks = dict(table.hooks) | alive
        keys = merged([key for key in order if key in hooks], list(table.hooks))
        # The same dict object: the handles of others point to it.
        table.hooks.clear()
        table.hooks.update({key: hooks[key] for key in keys})
        for flags, saved in zip(table.options, options, strict=True):
            flags.update({key: flag for key, flag in saved.items() if key in alive})

    back.callback(put_back)


def _if_alive(hook: Hook, put_back: Callable[[], None]) -> Callable[[], None]:
    return lambda: put_back() if hook.owner.alive else None
