"""Watching modules that cannot carry a hook of their own.

`nn.TransformerEncoderLayer` in evaluation runs as one fused kernel, unless a forward hook is
registered on it or on anything inside it; then it runs layer by layer, and the last bits of its
result differ. An observer must not do that. A ScriptModule takes no hooks at all. Both are watched
through one global hook, at which torch does not look.

What runs inside the fused kernel or the script is not called as a module, with or without nethook;
`why_not_called` says so.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from nethook.addresses.tree import Site, Tree
from nethook.hooks.attachment import Attachment
from nethook.hooks.compile.eager import without_warning_of_global_hooks
from nethook.hooks.hook import Hook, Owner

_KINDS = (nn.TransformerEncoderLayer, torch.jit.ScriptModule)
_FUSED = (
    "inside the nn.TransformerEncoderLayer {layer!r}, which runs as one fused kernel in evaluation "
    "without gradient. To see inside, call torch.backends.mha.set_fastpath_enabled(False) before "
    "the forward."
)
_SCRIPTED = (
    "inside the ScriptModule {layer!r}, whose parts are not called as modules. Trace the model "
    "that was scripted."
)


def routed_modules(tree: Tree) -> set[int]:
    """The ids of all modules on which a local hook would change the run, or is refused."""
    layers = _layers(tree)
    return {id(inner) for layer in layers for inner in layer.module.modules()} if layers else set()


def why_not_called(tree: Tree, address: str) -> str | None:
    """Why a module of the model may not have been called; None where nothing is known."""
    for layer in _layers(tree):
        inside = [f"{name}." if name else "" for name in layer.names]
        if address not in layer.names and address.startswith(tuple(inside)):
            scripted = isinstance(layer.module, torch.jit.ScriptModule)
            reason = _SCRIPTED if scripted else _FUSED
            return f"it lies {reason.format(layer=layer.address)}"
    return None


def _layers(tree: Tree) -> list[Site]:
    if not tree.has(*_KINDS):
        return []
    return [site for site in tree.sites if isinstance(site.module, _KINDS)]


class Router(Hook):
    """A global hook that hands each call to the taps of the module that was called."""

    __slots__ = ("_taps",)

    def __init__(self, owner: Owner) -> None:
        super().__init__(owner, "*")
        # By id, which is quick, with the module itself to be sure that it is the same one.
        self._taps: dict[int, tuple[weakref.ref[nn.Module], list[Hook]]] = {}

    def add(self, module: nn.Module, tap: Hook) -> None:
        """Hands the calls of `module` to `tap`, after the taps it has already."""
        self._taps.setdefault(id(module), (weakref.ref(module), []))[1].append(tap)

    def taps(self) -> list[tuple[nn.Module, Hook]]:
        """The taps, each with its module."""
        live = ((ref(), taps) for ref, taps in self._taps.values())
        return [(module, tap) for module, taps in live if module is not None for tap in taps]

    def take(self, modules: set[int]) -> Callable[[], None]:
        """Takes the taps of some modules off; the function returned puts them back."""
        all_taps = self._taps
        self._taps = {key: taps for key, taps in all_taps.items() if key not in modules}

        def put_back() -> None:
            self._taps = all_taps | self._taps  # in the old order, and what came since

        return put_back

    def __call__(self, module: nn.Module, *rest: Any) -> None:
        """Calls the taps of `module`."""
        entry = self._taps.get(id(module))
        if entry is not None and entry[0]() is module:
            for tap in entry[1]:
                tap(module, *rest)


class RouterPair:
    """The routers of one attachment: before the forward and after it, registered when needed."""

    __slots__ = ("_after", "_before", "_hooks")

    def __init__(self, hooks: Attachment) -> None:
        self._hooks = hooks
        self._before: Router | None = None
        self._after: Router | None = None

    def forward_pre(self, module: nn.Module, tap: Hook) -> None:
        """`tap(module, args)` before the forward. A global hook is not told keyword arguments."""
        if self._before is None:
            self._before = self._router()
            self._hooks.every_forward_pre(self._before)
        self._before.add(module, tap)

    def forward(self, module: nn.Module, tap: Hook) -> None:
        """`tap(module, args, kwargs, output)` after the forward."""
        if self._after is None:
            self._after = self._router()
            self._hooks.every_forward(self._after, with_kwargs=True)
        self._after.add(module, tap)

    def _router(self) -> Router:
        if self._before is None and self._after is None:
            without_warning_of_global_hooks(self._hooks)
        return Router(self._hooks.owner)
