"""Modules that only wrap another one, and under which attribute they keep it.

A wrapper is transparent: `fc1` inside `DataParallel(torch.compile(model))` is still `fc1`.
Wrappers are recognised by class. Their classes are looked up among the modules that are already
imported: where `torch._dynamo` was never imported (it takes seconds) nothing can be compiled.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from typing import cast

from torch import nn

# module that defines the wrapper, its class, the attribute that holds what is wrapped
_WRAPPERS = (
    ("torch.nn.parallel", "DataParallel", "module"),
    ("torch.nn.parallel", "DistributedDataParallel", "module"),
    ("torch.optim.swa_utils", "AveragedModel", "module"),
    ("torch._dynamo.eval_frame", "OptimizedModule", "_orig_mod"),
    (
        "torch.distributed.algorithms._checkpoint.checkpoint_wrapper",
        "ActivationWrapper",
        "_checkpoint_wrapped_module",
    ),
    (
        "torch.distributed.fsdp.fully_sharded_data_parallel",
        "FullyShardedDataParallel",
        "_fsdp_wrapped_module",
    ),
)


def _attribute(cls: type[nn.Module]) -> str | None:
    for source, name, attribute in _WRAPPERS:
        known = getattr(sys.modules.get(source), name, None)
        if known is not None and issubclass(cls, known):
            return attribute
    return None


# The attribute under which a class of wrappers keeps what it wraps; None for any other class. The
# answer for a class never changes, for its bases were imported before it.
wrapped_attribute = cast(
    Callable[[type[nn.Module]], str | None], lru_cache(maxsize=4096)(_attribute)
)


def inside(module: nn.Module) -> tuple[str, nn.Module] | None:
    """What a wrapper keeps and under which attribute; None if `module` wraps nothing."""
    attribute = wrapped_attribute(type(module))
    if attribute is None:
        return None
    # A subclass with modules of its own does not only wrap: looking through would hide them.
    children = {key: child for key, child in module._modules.items() if child is not None}
    return (attribute, children[attribute]) if list(children) == [attribute] else None


def is_compiled(wrapper: nn.Module) -> bool:
    """Whether a wrapper is what `torch.compile(module)` returns."""
    return isinstance(wrapper, sys.modules["torch._dynamo.eval_frame"].OptimizedModule)


def can_be_compiled() -> bool:
    """Whether anything can have been compiled in this process."""
    return "torch._dynamo.eval_frame" in sys.modules
