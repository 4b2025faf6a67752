"""`get_module` and `get_parameter`: one name to one object."""

from __future__ import annotations

import torch
from torch import nn

from nethook.addresses.suggest import hint
from nethook.addresses.tree import AnySite, Index, Tree
from nethook.errors import NoSuchSiteError


def get_module(model: nn.Module, name: str) -> nn.Module:
    """The module of that name.

        nethook.get_module(model, "layer1.0.conv1")

    The name is literal (no globs; `select` takes those); `""` is the model itself. Names inside
    wrappers are those of the bare model, and the long spelling (`module.fc1`) works too.

    Raises:
        NoSuchSiteError: a `LookupError` that names the closest modules.
    """
    return _find(Tree(model), name, kind="module").module


def get_parameter(model: nn.Module, name: str) -> torch.Tensor:
    """The parameter or buffer of that name: the very tensor, not a copy.

        nethook.get_parameter(model, "fc1.weight").data.mul_(2)

    The name is literal. Tied weights answer to each of their names. A parametrised weight is
    found by its bare name and is the tensor that the optimizer changes (`….original`).

    Raises:
        NoSuchSiteError: a `LookupError` that names the closest parameters.
    """
    return _find(Tree(model).parameters(), name, kind="parameter").tensor


def _find(index: Index[AnySite], name: str, *, kind: str) -> AnySite:
    found = index.find(name)
    if found is None:
        message = f"the model has no {kind} {name!r}."
        raise NoSuchSiteError(f"{message} {hint(name, list(index.names()), kind=kind)}")
    return found
