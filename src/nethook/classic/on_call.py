"""Hooks that hand the calls of a layer to a function, and stay until they are removed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from nethook.addresses.tree import Tree
from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.layouts.unhookable import RouterPair, routed_modules


class OnCall(Hook):
    """Calls a function with all that torch tells a hook, but for the module.

    It holds the function, and with it the attachment: the hook is to stay until it is removed,
    also where nobody kept what put it on. That is what the originals did.
    """

    __slots__ = ("_function",)

    def __init__(self, owner: Owner, address: str, function: Callable[..., Any]) -> None:
        super().__init__(owner, address)
        self._function = function

    def __call__(self, module: nn.Module, *told: Any) -> Any:
        """What the function returns."""
        return self._function(*told)


def put_on(
    hooks: Attachment,
    tree: Tree,
    module: nn.Module,
    address: str,
    *,
    before: Callable[..., None] | None = None,
    after: Callable[..., Any],
    changes: bool = False,
) -> None:
    """Calls `before(args, kwargs)` and `after(args, kwargs, output)` around each call of a layer.

    Where a hook on the layer would change what it computes, it is watched through a global hook,
    which is not told `kwargs` before the call. With `changes` the hook goes on the layer in any
    case, and what `after` returns becomes the output.
    """
    first = None if before is None else OnCall(hooks.owner, address, before)
    last = OnCall(hooks.owner, address, after)
    if not changes and id(module) in routed_modules(tree):
        routers = RouterPair(hooks)
        if first is not None:
            routers.forward_pre(module, first)
        routers.forward(module, last)
    else:
        if first is not None:
            hooks.forward_pre(module, first)
        hooks.forward(module, last, with_kwargs=True)
