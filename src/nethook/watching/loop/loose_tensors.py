"""Tensors that a script trains without a module, followed as if they were a model.

    w = torch.randn(784, 10, requires_grad=True)
    loss = cross_entropy(x @ w, y); loss.backward(); w.data -= lr * w.grad

Nobody calls such a model: its backward passes are what is seen of it.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from nethook.torch_private import parameters_of


class LooseTensors(nn.Module):
    """Stands for some tensors; they stay what they are.

    Arguments:
        tensors: by name.
    """

    def __init__(self, tensors: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        parameters_of(self).update(tensors)  # type: ignore[arg-type]


def is_trained(root: nn.Module, tensor: torch.Tensor) -> bool:
    """Whether a tensor that a model has is one of its parameters."""
    return isinstance(tensor, nn.Parameter) or isinstance(root, LooseTensors)
