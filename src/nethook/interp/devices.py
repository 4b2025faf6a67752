"""Where a model is, and its inputs beside it."""

from __future__ import annotations

import torch
from torch import nn

from nethook.addresses.inputs import Inputs, as_inputs
from nethook.errors import OptionError
from nethook.extracting.features import home, moved
from nethook.torch_private import forward_pre_hooks_of


def device_of(model: nn.Module) -> torch.device | None:
    """The one device of a model, None where there are several; an error where it has no values."""
    device = home(model)
    if device is not None and device.type == "meta" and not _loads_later(model):
        raise OptionError(
            "`model` must have weights; got one on the device meta, whose weights have shapes and "
            'no values. Write model.to_empty(device="cpu"), and load them: '
            "model.load_state_dict(...)."
        )
    return device


def moved_inputs(given: object, device: torch.device | None) -> Inputs:
    """Inputs on the device of the model, where that is a single one."""
    inputs = as_inputs(given)
    return Inputs(moved(inputs.args, device), moved(dict(inputs.kwargs), device))


def _loads_later(model: nn.Module) -> bool:
    """Whether others may bring the weights before each call, as accelerate does from a disk."""
    return any("forward" in vars(m) or forward_pre_hooks_of(m) for m in model.modules())
