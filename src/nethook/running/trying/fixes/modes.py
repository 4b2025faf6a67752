"""Training and evaluation mode as they should be: for the time of each call, where it is not.

While gradients are recorded, a module that is in evaluation mode and has nothing frozen is called
in training mode; and while they are not, one that is in training mode is called in evaluation mode.
The flag is put back after the call, so what the script reads is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch import nn

from nethook.hooks.attachment import Attachment
from nethook.running.trying.change import Change
from nethook.running.trying.limits import Call
from nethook.runs.reading.run import Run

CODES: Final = ("eval-mode-training", "train-mode-evaluation")


def propose(finding: Mapping[str, Any], run: Run) -> Change | None:
    """The mode that is missing."""
    code = str(finding.get("code"))
    if code == "eval-mode-training":
        return Change("modes", code, "training in training mode", {"training": 1}, "eval")
    return Change("modes", code, "evaluations in evaluation mode", {"training": 0}, "eval")


def apply(change: Change, hooks: Attachment, done: Callable[[], None]) -> None:
    """From now on."""
    wanted = bool(change.numbers["training"])
    # A module may call itself: each call puts back what it found.
    changed: list[nn.Module] = []

    def before(module: nn.Module, *_: Any) -> None:
        wrong = torch.is_grad_enabled() is wanted and module.training is not wanted
        if wrong and not (wanted and _frozen(module)):
            module.training = wanted
            changed.append(module)
            done()

    def after(module: nn.Module, *_: Any) -> None:
        if changed and any(module is other for other in changed):
            changed.remove(module)
            module.training = not wanted

    hooks.every_forward_pre(Call(hooks.owner, "*", before))
    hooks.every_forward(Call(hooks.owner, "*", after), always_call=True)


def _frozen(module: nn.Module) -> bool:
    """Whether nothing of a module is trained: it may be in evaluation mode on purpose."""
    parameters = list(module.parameters())
    return bool(parameters) and not any(parameter.requires_grad for parameter in parameters)
