"""Models inside of other people's wrappers."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx, nn
from torch.optim.swa_utils import AveragedModel

from tests.zoo.exhibit import Exhibit, Given, Quiet

__all__ = ["EXHIBITS"]

# A DeprecationWarning from torch 2.10 on, a FutureWarning from 2.14 on.
SCRIPT = Quiet(Warning, "`torch.jit", "models that were scripted are still about")


def _mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))


def _averaged(model: nn.Module, given: Given) -> object:
    """Updates the average inside of the scope, as a training loop does, and runs it."""
    assert isinstance(model, AveragedModel)
    online = _mlp()
    model.update_parameters(online)
    model.update_parameters(online)
    return model(given.floats(3, 4))


def _checkpoint_wrapped() -> nn.Module:
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

    model = nn.Sequential(nn.Linear(4, 4), _mlp(), nn.Linear(2, 2))
    model[1] = checkpoint_wrapper(model[1])
    return model


def _scripted() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4), torch.jit.script(_mlp()), nn.Tanh())


def _unoptimised(model: nn.Module, given: Given) -> object:
    # The optimiser of TorchScript profiles the first runs and changes the last bits after them.
    with torch.jit.optimized_execution(False):
        return model(given.floats(3, 4))


def _symbolic() -> nn.Module:
    return fx.symbolic_trace(nn.Sequential(_mlp(), nn.ReLU(inplace=True)))


class Tower(nn.Module):
    """Wrappers around wrappers."""

    def __init__(self) -> None:
        super().__init__()
        self.tower = nn.DataParallel(nn.DataParallel(_mlp()))

    def forward(self, x: Any) -> Any:
        return self.tower(x)


EXHIBITS = (
    Exhibit(
        "data_parallel",
        "DataParallel, which passes through without a GPU.",
        lambda: nn.DataParallel(_mlp()),
    ),
    Exhibit("wrapped_twice", "A wrapper in a wrapper in a model.", Tower),
    Exhibit(
        "averaged_model",
        "AveragedModel, updated in the scope.",
        lambda: AveragedModel(_mlp()),
        _averaged,
    ),
    Exhibit("checkpoint_wrapper", "The checkpoint wrapper of FSDP.", _checkpoint_wrapped),
    Exhibit(
        "scripted_child",
        "A scripted child, whose inside is no Python.",
        _scripted,
        _unoptimised,
        quiet=[SCRIPT],
        no_oracle="torch takes no hooks on scripted modules",
    ),
    Exhibit("fx_graph_module", "A traced graph module: its forward is generated code.", _symbolic),
)
