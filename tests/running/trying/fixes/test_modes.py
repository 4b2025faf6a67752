"""Training and evaluation mode, for the time of a call."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Owner
from nethook.running.trying.change import Change
from nethook.running.trying.comparing import compare
from nethook.running.trying.fixes import modes
from tests.running.trying.trials import both, with_fault


@pytest.mark.parametrize("code", modes.CODES)
def test_evaluations_judge_it(code: str) -> None:
    change = modes.propose({"code": code}, SimpleNamespace())  # type: ignore[arg-type]
    assert change is not None
    assert change.judged_by == "eval"


class Seen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(2)
        self.frozen = nn.Linear(2, 2).requires_grad_(False)
        self.modes: list[tuple[bool, bool, bool]] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.frozen(self.norm(x))
        return y


def modes_seen(*, training: bool, wanted: bool, grad: bool) -> tuple[bool, bool, bool]:
    """Mode of the norm and of the frozen layer while they were called, and of the net after it."""
    net = Seen().train(training)
    during = {}
    for name in ("norm", "frozen"):
        net.get_submodule(name).register_forward_pre_hook(
            lambda module, args, name=name: during.update({name: module.training})
        )
    with Attachment(Owner("test")) as hooks, torch.set_grad_enabled(grad):
        modes.apply(Change(numbers={"training": float(wanted)}), hooks, lambda: None)
        net(torch.randn(4, 2))
    assert all(module.training is training for module in net.modules())
    return during["norm"], during["frozen"], net.training


def test_what_trains_is_called_in_training_mode_but_for_what_is_frozen() -> None:
    assert modes_seen(training=False, wanted=True, grad=True) == (True, False, False)
    assert modes_seen(training=False, wanted=True, grad=False) == (False, False, False)


def test_what_is_evaluated_is_called_in_evaluation_mode() -> None:
    assert modes_seen(training=True, wanted=False, grad=False) == (False, False, True)
    assert modes_seen(training=True, wanted=False, grad=True) == (True, True, True)


def test_the_mode_is_put_back_after_a_forward_that_fails() -> None:
    net = nn.Sequential(nn.Dropout(), nn.Linear(2, 2))
    with Attachment(Owner("test")) as hooks, torch.no_grad():
        modes.apply(Change(numbers={"training": 0.0}), hooks, lambda: None)
        with pytest.raises(RuntimeError):
            net(torch.zeros(1, 3))
    assert all(module.training for module in net.modules())


def test_evaluation_mode_is_tried(tmp_path: Path) -> None:
    evaluates = (
        "        optimizer.step()\n",
        "        optimizer.step()\n    with torch.no_grad(): nn.functional.mse_loss(model(x), y)\n",
    )
    script = with_fault(evaluates, ("nn.Tanh(), nn", "nn.Tanh(), nn.Dropout(0.8), nn"))
    change = Change("modes", "train-mode-evaluation", "", {"training": 0}, "eval")
    before, after = both(tmp_path, script, change)
    compared = compare(before.losses, after.losses, "eval")
    assert compared.eval is not None
    assert compared.eval.after < compared.eval.before
    assert compared.helped
