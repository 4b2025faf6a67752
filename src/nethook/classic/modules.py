"""Names of modules and parameters, replacing a module, and what is trained."""

from __future__ import annotations

import torch
from torch import nn

from nethook.addresses.lookup import get_module
from nethook.errors import InputsError, PatternError


def module_names(model: nn.Module) -> list[str]:
    """The names of all modules, the model's own (`""`) first, as `named_modules` gives them."""
    return [name for name, _ in model.named_modules()]


def parameter_names(model: nn.Module) -> list[str]:
    """The names of all parameters, as `named_parameters` gives them."""
    return [name for name, _ in model.named_parameters()]


def replace_module(model: nn.Module, name: str, new_module: nn.Module) -> None:
    """Puts another module in the place of the one of that name.

        nethook.replace_module(model, "layer1.0.relu", nn.GELU())

    Raises:
        NoSuchSiteError: a `LookupError`, where the model has no such module.
    """
    if name == "":
        raise PatternError(
            "`name` must name a module inside the model; got ''. To replace the model itself, "
            "assign the new one to its variable."
        )
    get_module(model, name)  # one that is not there would be added, and never called
    parent, _, own = name.rpartition(".")
    setattr(get_module(model, parent), own, new_module)


def set_requires_grad(requires_grad: bool, *models: nn.Module | torch.Tensor) -> None:
    """Sets `requires_grad` of tensors, and of all parameters of modules.

    nethook.set_requires_grad(False, model, target)
    """
    for model in models:
        if isinstance(model, nn.Module):
            for parameter in model.parameters():
                parameter.requires_grad = requires_grad
        elif isinstance(model, torch.Tensor):
            model.requires_grad = requires_grad
        else:
            raise InputsError(
                f"`models` must be modules and tensors; got {type(model).__name__}. For a list, "
                "write set_requires_grad(flag, *list)."
            )
