"""Tensors of torch's own that are spread over ranks, or on their way between them.

They cannot be copied past their own dispatch, as the subclasses of users are: they would lose what
they hold. What they do when they are copied makes no ranks talk to each other.
"""

from __future__ import annotations

import sys
from typing import Any

import torch

from nethook.torch_private import type_on_its_way


def arrived(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, once a collective of the model's own that makes it has ended."""
    kind = type_on_its_way()
    if kind is not None and isinstance(tensor, kind):
        held: Any = tensor
        return held.trigger_wait()  # type: ignore[no-any-return]
    return tensor


def is_dtensor(tensor: torch.Tensor) -> bool:
    """Whether a tensor is spread over ranks (`DTensor`)."""
    kind: Any = getattr(sys.modules.get("torch.distributed.tensor"), "DTensor", None)
    return kind is not None and isinstance(tensor, kind)
