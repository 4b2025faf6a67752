"""Exporting a model as it is without nethook: its hooks are off while torch reads the model.

`torch.jit.script` refuses a module with hooks written in Python, and what `torch.jit.trace` and
`torch.export` make of them would stay in the exported program for ever. A CUDA graph would replay
the model's kernels without calling a hook, and is refused.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Final

from torch import nn

from nethook.addresses.tree import Tree
from nethook.errors import ScopeError
from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Hook
from nethook.hooks.imports import when_imported
from nethook.hooks.registries import global_hooks, hooks_on
from nethook.hooks.suspend import suspended, take_off
from nethook.hooks.wrapped import WrappedFunction
from nethook.torch_private import FRAMES_UP

_SCRIPT: Final = "torch.jit.script"
_GRAPHED: Final = "make_graphed_callables"
_EXPORTERS: Final = (
    ("torch.jit", "script"),
    ("torch.jit", "trace"),
    ("torch.jit", "trace_module"),
    ("torch.export", "export"),
    ("torch.onnx", "export"),
)


def export_without_hooks(hooks: Attachment) -> None:
    """Takes nethook's hooks off for every call that exports a model, while `hooks` are on.

    Functions of a module that is not imported yet are waited for: importing it takes long.
    """
    this = weakref.ref(hooks)  # a module that never comes must not keep it alive

    def put(holder: str, name: str, kind: type[Hook]) -> None:
        hooks = this()
        if hooks is not None and callable(getattr(sys.modules.get(holder), name, None)):
            hooks.add(WrappedFunction(holder, name, kind(hooks.owner, f"{holder}.{name}")))

    for holder, name in _EXPORTERS:
        hooks.add(when_imported(holder, partial(put, holder, name, _Exporter)))
    hooks.add(when_imported("torch.cuda", partial(put, "torch.cuda", _GRAPHED, _Refused)))


class _Refused(Hook):
    __slots__ = ()

    def __call__(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        given = args[0] if args else kwargs.get("callables")
        for model in given if isinstance(given, tuple) else (given,):
            if isinstance(model, nn.Module) and any(
                isinstance(hook, Hook)
                for table in hooks_on(Tree(model))
                for hook in table.hooks.values()
            ):
                raise ScopeError(
                    f"the model is hooked by {self.owner.name}, and a CUDA graph would replay its "
                    "kernels without calling a hook: close the watch first, or call "
                    "torch.cuda.make_graphed_callables inside nethook.suspended(model), which "
                    "leaves what is graphed unrecorded."
                )
        return original(*args, **kwargs)


class _Exporter(Hook):
    __slots__ = ()

    def __call__(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self.address == _SCRIPT and len(args) < 3:
            # It looks for names in the frame of its caller, which is two further up from here.
            kwargs[FRAMES_UP] = kwargs.get(FRAMES_UP, 0) + 2
        model = args[0] if args else kwargs.get("obj", kwargs.get("func", kwargs.get("mod")))
        if not isinstance(model, nn.Module):
            return original(*args, **kwargs)
        with suspended(model), _without_global_hooks():
            return original(*args, **kwargs)


@contextmanager
def _without_global_hooks() -> Iterator[None]:
    """Our hooks on every module, which `suspended` silences, are off: torch looks for them."""
    with ExitStack() as back:
        for table in list(global_hooks()):
            take_off(table, back)
        yield
