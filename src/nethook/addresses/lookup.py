"""`get_module` and `get_parameter`: one name to one object."""

from __future__ import annotations

import torch
from torch import nn

from nethook.addresses.glob import is_literal, unescape
from nethook.addresses.suggest import closest
from nethook.addresses.tree import AnySite, Index, Tree
from nethook.errors import NoSuchSiteError, PatternError


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
    if not isinstance(name, str):
        raise PatternError(
            f"`name` must be a string, the name of a {kind}; got {name!r} of type "
            f"{type(name).__name__}. For other patterns use nethook.select."
        )
    site = index.find(name) or index.find(unescape(name))
    if site is None:
        literal = "" if is_literal(name) else " The name is literal: for globs use nethook.select."
        names = closest(name, index.shown(), kind=kind)
        raise NoSuchSiteError(f"the model has no {kind} {name!r}.{literal} {names}")
    return site
