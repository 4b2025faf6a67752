"""What autograd's graph of a run knows: which operations a tensor was made by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import torch

from nethook.torch_private import saved_by

MOST: Final = 20_000
"""Nodes that are looked at."""


def nodes_behind(*made: torch.Tensor) -> Iterator[Any]:
    """Every node that some tensors were made by, the last ones first."""
    waiting: list[Any] = [tensor.grad_fn for tensor in made if tensor.grad_fn is not None]
    seen = set(waiting)
    for _ in range(MOST):
        if not waiting:
            return
        node = waiting.pop()
        yield node
        for before, _ in node.next_functions:
            if before is not None and before not in seen:
                seen.add(before)
                waiting.append(before)


def gradients(made: torch.Tensor, *of: torch.Tensor) -> list[torch.Tensor | None]:
    """The gradient of a number by each tensor; None by one that it does not depend on."""
    return list(torch.autograd.grad(made, of, retain_graph=True, allow_unused=True))


def uses_batch_statistics(*made: torch.Tensor) -> bool:
    """Whether a batch norm took mean and variance from the batch itself."""
    return any(
        "BatchNorm" in node.name() and saved_by(node, "training") is True
        for node in nodes_behind(*made)
    )


def softmax_over_first(*made: torch.Tensor) -> bool:
    """Whether there is a softmax over dimension 0 of a tensor with more dimensions."""
    for node in nodes_behind(*made):
        if node.name() in ("SoftmaxBackward0", "LogSoftmaxBackward0"):
            result = saved_by(node, "result")
            if saved_by(node, "dim") == 0 and isinstance(result, torch.Tensor) and result.dim() > 1:
                return True
    return False
