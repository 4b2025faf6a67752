"""Weights that are computed from other weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize, prune
from torch.nn.utils import spectral_norm as hooked_spectral_norm
from torch.nn.utils import weight_norm as hooked_weight_norm

from tests.zoo.exhibit import Exhibit, Given, Quiet

__all__ = ["EXHIBITS"]


class Symmetric(nn.Module):
    """A parametrisation with a module inside, so that hooks also run in its computation."""

    def __init__(self) -> None:
        super().__init__()
        self.act = nn.Tanh()

    def forward(self, weight: Tensor) -> Tensor:
        return self.act(weight.triu() + weight.triu(1).mT)


def _symmetric() -> nn.Module:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    parametrize.register_parametrization(model[0], "weight", Symmetric())
    return model


def _pruned() -> nn.Module:
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
    prune.l1_unstructured(model[0], "weight", amount=0.5)
    prune.random_structured(model[2], "weight", amount=1, dim=0)
    prune.random_unstructured(model[2], "bias", amount=1)
    return model


class Hyper(nn.Module):
    """One network computes the weights of another, which is run with them in place of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.maker = nn.Linear(4, 16)
        self.main = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        weight = self.maker(x.mean(0)).view(4, 4)
        made: Tensor = torch.func.functional_call(self.main, {"weight": weight}, (x,))
        return made + self.main(x)


def _cached(model: nn.Module, given: Given) -> object:
    x = given.floats(3, 4)
    with parametrize.cached():
        return model(x) + model(x)


EXHIBITS = (
    Exhibit(
        "weight_norm",
        "Weight norm as a parametrisation: the weight is computed at each use.",
        lambda: nn.Sequential(parametrizations.weight_norm(nn.Linear(4, 4)), nn.Tanh()),
    ),
    Exhibit(
        "spectral_norm",
        "Spectral norm updates its buffers whenever the weight is read in training.",
        lambda: nn.Sequential(parametrizations.spectral_norm(nn.Linear(4, 4)), nn.Tanh()),
    ),
    Exhibit(
        "orthogonal",
        "An orthogonal weight through the matrix exponential.",
        lambda: nn.Sequential(parametrizations.orthogonal(nn.Linear(4, 4)), nn.Tanh()),
    ),
    Exhibit(
        "own_parametrisation", "A parametrisation of one's own with a module in it.", _symmetric
    ),
    Exhibit(
        "cached_parametrisation",
        "The computed weight is cached over two calls.",
        _symmetric,
        _cached,
    ),
    Exhibit(
        "weight_norm_by_hook",
        "The old weight norm: a forward pre-hook sets a plain attribute.",
        lambda: nn.Sequential(hooked_weight_norm(nn.Linear(4, 4)), nn.Tanh()),
        quiet=[
            Quiet(FutureWarning, ".*weight_norm.* is deprecated", "the old form is the exhibit")
        ],
    ),
    Exhibit(
        "spectral_norm_by_hook",
        "The old spectral norm: a pre-hook that writes buffers in place.",
        lambda: nn.Sequential(hooked_spectral_norm(nn.Linear(4, 4)), nn.Tanh()),
        quiet=[
            Quiet(FutureWarning, ".*spectral_norm.* is deprecated", "the old form is the exhibit")
        ],
    ),
    Exhibit(
        "pruned", "Pruning: a pre-hook multiplies the weight by a mask before each call.", _pruned
    ),
    Exhibit(
        "hypernetwork", "`functional_call` runs a module with weights that are not its own.", Hyper
    ),
)
