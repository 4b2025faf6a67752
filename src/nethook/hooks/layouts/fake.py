"""A forward with shapes alone: a copy of a model without memory, run on inputs without values.

What feeds what can be learnt from it before the first number is computed. A model whose forward
looks at values (`if x.sum() > 0`) cannot be run so; torch raises an error then.
"""

from __future__ import annotations

import copy
import copyreg
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from nethook.addresses.nested import map_tensors
from nethook.torch_private import (
    FakeCopyMode,
    FakeTensor,
    FakeTensorMode,
    forward_hooks_of,
    forward_pre_hooks_of,
)


@contextmanager
def fake_copy(model: nn.Module, value: Any) -> Iterator[tuple[nn.Module, Any]]:
    """Fake copies of a model and of a nested value, in a block in which they can be computed with.

    Hooks are left out: they may be anything, and would be called once more than the user expects.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with _generators_refused(), FakeCopyMode(mode):
        twin = copy.deepcopy(model)
    for module in twin.modules():
        forward_hooks_of(module).clear()
        forward_pre_hooks_of(module).clear()
    with mode, _NoMemory(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the forward that counts will say it again
        yield twin, map_tensors(mode.from_tensor, value)


# What is registered with Python is the same for the whole process: one copy at a time.
_one_at_a_time = threading.RLock()


@contextmanager
def _generators_refused() -> Iterator[None]:
    """A block in which this thread's copy of a `torch.Generator` is an error.

    Its copy would read a state without memory; torch 2.8 ends the process then.
    """
    here = threading.get_ident()

    def reduced(generator: torch.Generator) -> Any:
        if threading.get_ident() == here:
            raise RuntimeError(
                "a torch.Generator has a state, which a copy without values cannot have."
            )
        return generator.__reduce__()

    with _one_at_a_time:
        before = copyreg.dispatch_table.get(torch.Generator)
        copyreg.dispatch_table[torch.Generator] = reduced
        try:
            yield
        finally:
            if before is None:
                copyreg.dispatch_table.pop(torch.Generator, None)
            else:
                copyreg.dispatch_table[torch.Generator] = before


class _NoMemory(TorchFunctionMode):
    """Refuses to hand out the memory of a fake tensor: torch 2.13 gives null, and crashes on it."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Called by torch."""
        if func is torch.Tensor.__dlpack__:
            raise RuntimeError("a tensor without values has no memory for another library.")
        return func(*args, **(kwargs or {}))


def is_fake(tensor: torch.Tensor) -> bool:
    """Whether a tensor has a shape and no values."""
    return isinstance(tensor, FakeTensor)
