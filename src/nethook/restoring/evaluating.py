"""A model in evaluation for a block, and exactly as it was afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from nethook.addresses.nested import map_tensors


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode and no gradients for a block; then each module has the mode it had.

    The flags are set one by one and put back one by one. `model.eval()` and `model.train()` would
    not do: a model may have parts in either mode (a frozen batch norm in a training network), and
    may override both methods with more than a flag.
    """
    modes = [(module, module.training) for module in model.modules()]
    try:
        for module, training in modes:
            if training:
                module.training = False
        # Not inference_mode: a head that is trained on the features has to save them for backward.
        with torch.no_grad():
            yield
    finally:
        for module, training in modes:
            if module.training is not training:
                module.training = training


def home(model: nn.Module) -> torch.device | None:
    """The one device that all parameters and buffers are on; None where there are several."""
    devices = {tensor.device for tensor in (*model.parameters(), *model.buffers())}
    return devices.pop() if len(devices) == 1 else None


def moved(value: Any, device: torch.device | None) -> Any:
    """A nested value with its tensors on a device; those without data stay where they are."""
    if device is None or device.type == "meta":
        return value

    def move(tensor: torch.Tensor) -> torch.Tensor:
        away = tensor.device != device and tensor.device.type != "meta"
        return tensor.to(device, non_blocking=True) if away else tensor

    return map_tensors(move, value)
