"""Calls that are about shapes alone: with symbols in the place of tensors, or with meta tensors.

Keras calls every layer so when a model is put together of them. Such a call says nothing of what
will be trained.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from numbers import Number
from typing import Any, Final

import torch
from torch import nn

DEEP: Final = 4
"""Objects, one in the other, in which tensors are looked for: a batch of a graph is such a one."""
MOST: Final = 256
"""Objects that are looked at; what holds more is taken for data."""


def is_symbolic(args: tuple[Any, ...]) -> bool:
    """Whether something is among the arguments, and no data: no values, no text, no numbers."""
    waiting = [(argument, 0) for argument in args]
    arrays = getattr(sys.modules.get("numpy"), "ndarray", ())
    seen, symbols = set[int](), False
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, torch.Tensor):
            if not value.is_meta:
                return False
            symbols = True
        elif isinstance(value, arrays) or (depth == 0 and isinstance(value, str | bytes | Number)):
            return False
        elif id(value) not in seen and not isinstance(value, nn.Module | type):
            seen.add(id(value))
            if len(seen) > MOST:
                return False
            if isinstance(value, Mapping):
                waiting += [(item, depth) for item in value.values()]
            elif isinstance(value, list | tuple | set):
                waiting += [(item, depth) for item in value]
            elif isinstance(getattr(value, "__dict__", None), dict):
                symbols = True
                waiting += [(item, depth + 1) for item in vars(value).values() if depth < DEEP]
    return symbols
