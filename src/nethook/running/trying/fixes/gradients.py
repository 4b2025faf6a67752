"""Gradients that are cleared when they should be, and not when they should not.

- `missing-zero-grad`: they are cleared after each step.
- `gradient-wiped`: `zero_grad` puts gradients aside. If none have come when the optimizer steps,
  the step would be without any, and those are used that were put aside. Gradients that are cleared
  on purpose before another backward pass, as a GAN does, stay cleared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import torch

from nethook.hooks.attachment import Attachment
from nethook.running.trying.change import Change
from nethook.running.trying.limits import around_steps, wrap
from nethook.runs.reading.run import Run

CODES: Final = ("missing-zero-grad", "gradient-wiped")
_SAID: Final = {
    "missing-zero-grad": "zero_grad() after each step",
    "gradient-wiped": "zero_grad() after the step, not before it",
}


def propose(finding: Mapping[str, Any], run: Run) -> Change | None:
    """The other order."""
    code = str(finding.get("code"))
    return Change("gradients", code, _SAID[code])


def apply(change: Change, hooks: Attachment, done: Callable[[], None]) -> None:
    """From now on."""
    if change.code == "missing-zero-grad":

        def clear(optimizer: Any) -> None:
            optimizer.zero_grad()
            done()

        around_steps(hooks, after=clear)
    else:
        _keep_wiped(hooks, done)


def _keep_wiped(hooks: Attachment, done: Callable[[], None]) -> None:
    aside: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def put_aside(parameters: list[torch.Tensor]) -> None:
        for parameter in parameters:
            if parameter.grad is not None and bool(parameter.grad.any()):
                aside[id(parameter)] = parameter, parameter.grad.detach().clone()

    def of_optimizer(original: Any, optimizer: Any, *args: Any, **named: Any) -> Any:
        put_aside(_parameters(optimizer))
        return original(optimizer, *args, **named)

    def of_module(original: Any, module: Any, *args: Any, **named: Any) -> Any:
        put_aside(list(module.parameters()))
        return original(module, *args, **named)

    def before(optimizer: Any) -> None:
        parameters = _parameters(optimizer)
        if any(p.grad is not None and bool(p.grad.any()) for p in parameters):
            return
        back = [aside[id(p)] for p in parameters if id(p) in aside]
        for parameter, gradient in back:
            parameter.grad = gradient
        if back:
            done()

    def after(optimizer: Any) -> None:
        for parameter in _parameters(optimizer):
            if aside.pop(id(parameter), None) is not None:
                parameter.grad = None

    wrap(hooks, "torch.optim.optimizer.Optimizer", "zero_grad", of_optimizer)
    wrap(hooks, "torch.nn.modules.module.Module", "zero_grad", of_module)
    around_steps(hooks, before, after)


def _parameters(optimizer: Any) -> list[torch.Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
