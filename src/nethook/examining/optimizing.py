"""The optimizers of a script: their settings, and the same ones again on a copy of the model.

settings = settings_of(optimizers, model)          # plain data, and names of parameters
mine = made_again(settings[0], copied_model)       # of the copy's parameters, without history
step_alone(mine)                                   # no hook of anybody is called
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import nn

_PARAMETERS: Final = "params"


@dataclass(frozen=True, slots=True, eq=False)
class OptimizerSettings:
    """One optimizer, as far as it holds parameters of a model.

    Attributes:
        kind: its class.
        groups: the settings of each group, with the addresses of its parameters under `params`.
    """

    kind: type[torch.optim.Optimizer]
    groups: tuple[Mapping[str, Any], ...]

    @property
    def rate(self) -> float:
        """The largest learning rate of its groups; 0 where it has none."""
        return max((float(group.get("lr", 0.0)) for group in self.groups), default=0.0)

    @property
    def why_not(self) -> str:
        """Why it is not stepped on a copy, in words; "" where it may be."""
        name = self.kind.__name__
        if self.kind.__module__.partition(".")[0] != "torch":
            return f"its optimizer ({name}) is not one of torch's"
        closure = inspect.signature(self.kind.step).parameters.get("closure")
        if closure is not None and closure.default is inspect.Parameter.empty:
            return f"its optimizer ({name}) calls the model by itself"
        return "" if self.rate > 0 else "its learning rate is zero"


def settings_of(
    optimizers: Iterable[torch.optim.Optimizer], model: nn.Module
) -> tuple[OptimizerSettings, ...]:
    """Of the optimizers that hold parameters of a model, the settings as they are now."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    made: list[OptimizerSettings] = []
    for optimizer in optimizers:
        groups = []
        for group in optimizer.param_groups:
            mine = [names[id(one)] for one in group[_PARAMETERS] if id(one) in names]
            if mine:
                others = {name: _own(value) for name, value in group.items() if name != _PARAMETERS}
                groups.append({**others, _PARAMETERS: mine})
        if groups:
            made.append(OptimizerSettings(type(optimizer), tuple(groups)))
    return tuple(made)


def _own(value: Any) -> Any:
    """A learning rate may be a tensor that a scheduler writes to."""
    return value.detach().clone() if isinstance(value, torch.Tensor) else copy.copy(value)


def made_again(settings: OptimizerSettings, model: nn.Module) -> torch.optim.Optimizer:
    """An optimizer with the same settings, of a copy of the model; its state is that of a start."""
    parameters = dict(model.named_parameters())
    groups: list[dict[str, Any]] = [
        {
            **{name: _own(value) for name, value in group.items()},
            _PARAMETERS: [parameters[name] for name in group[_PARAMETERS] if name in parameters],
        }
        for group in settings.groups
    ]
    # What a constructor wants of its own accord, every group says: a class may ask for a rate.
    wanted = inspect.signature(settings.kind.__init__).parameters
    first = {key: value for key, value in groups[0].items() if key in wanted}
    first.pop(_PARAMETERS, None)
    kind: Any = settings.kind
    made: torch.optim.Optimizer = kind(groups, **first)
    return made


def step_alone(optimizer: torch.optim.Optimizer) -> None:
    """One step, without the hooks that torch calls around the steps of all optimizers."""
    step: Any = type(optimizer).step
    if getattr(step, "hooked", False):
        step = getattr(step, "__wrapped__", step)
    step(optimizer)
