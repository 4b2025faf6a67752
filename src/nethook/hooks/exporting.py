"""Exporting a model as it is without nethook: its hooks are off while torch reads the model.

`torch.jit.script` refuses a module with hooks written in Python, and what `torch.jit.trace` and
`torch.export` make of them would stay in the exported program for ever.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

from torch import nn

from nethook.hooks.attachment import Attachment
from nethook.hooks.functions import WrappedFunction
from nethook.hooks.hook import Hook
from nethook.hooks.suspend import suspended

_SCRIPT: Final = "torch.jit.script"
_EXPORTERS: Final = (
    ("torch.jit", "script"),
    ("torch.jit", "trace"),
    ("torch.jit", "trace_module"),
    ("torch.export", "export"),
    ("torch.onnx", "export"),
)


def export_without_hooks(hooks: Attachment) -> None:
    """Takes nethook's hooks off for every call that exports a model, while `hooks` are on.

    Functions of a module that is not imported yet are left alone: importing it takes long.
    """
    for holder, name in _EXPORTERS:
        if callable(getattr(sys.modules.get(holder), name, None)):
            hooks.add(WrappedFunction(holder, name, _Exporter(hooks.owner, f"{holder}.{name}")))


class _Exporter(Hook):
    __slots__ = ()

    def __call__(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self.address == _SCRIPT and len(args) < 3:
            # It looks for names in the frame of its caller, which is two further up from here.
            kwargs["_frames_up"] = kwargs.get("_frames_up", 0) + 2
        model = args[0] if args else kwargs.get("obj", kwargs.get("func", kwargs.get("mod")))
        if not isinstance(model, nn.Module):
            return original(*args, **kwargs)
        with suspended(model):
            return original(*args, **kwargs)
