"""The rule `missing-step`: when it reports, and when it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.doctor.small_runs import STEPS, Net, batch, codes
from tests.doctor.synthetic import Made


def test_eight_passes_without_a_step() -> None:
    (finding,) = Made(8).loop("optimizer_steps", 0).found("missing-step")
    assert finding.message.startswith("8 backward passes computed gradients")
    assert finding.evidence["optimizer steps"].value == 0
    assert not Made(7).loop("optimizer_steps", 0).found("missing-step")


def test_one_step_is_enough() -> None:
    assert not Made(8).loop("optimizer_steps", [0] * 7 + [1]).found("missing-step")


def test_steps_that_a_scaler_left_out() -> None:
    made = Made(8).loop("optimizer_steps", 0).loop("skipped_steps", 1)
    assert not made.found("missing-step")


def test_weights_that_stay_where_they_are() -> None:
    made = Made(8).loop("optimizer_steps", 0)
    assert made.rank(0, [5.0, 5.0, 5.0]).found("missing-step")


def by_hand(model: Any, _optimizer: Any, _after: Any) -> None:
    for _ in range(STEPS):
        x, y = batch()
        model.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        for parameter in model.parameters():
            parameter.data.add_(parameter.grad, alpha=-0.1)


def never(model: Any, _optimizer: Any, _after: Any) -> None:
    for _ in range(STEPS):
        x, y = batch()
        model.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()


def attack(model: Any, _optimizer: Any, _after: Any) -> None:
    x, y = batch()
    moved = torch.zeros_like(x, requires_grad=True)
    for _ in range(STEPS):
        nn.functional.cross_entropy(model(x + moved), y).backward()
        moved.data += 0.01 * moved.grad.sign()
        moved.grad = None


def saliency(model: Any, _optimizer: Any, _after: Any) -> None:
    for _ in range(STEPS):
        x, _ = batch()
        model(x.requires_grad_()).max(1).values.sum().backward()


class Other:
    """An optimizer that is not torch's."""

    def __init__(self, parameters: Any) -> None:
        self.parameters = list(parameters)

    def step(self) -> None:
        with torch.no_grad():
            for parameter in self.parameters:
                parameter -= 0.1 * parameter.grad


def other(model: Any, _optimizer: Any, _after: Any) -> None:
    optimizer = Other(model.parameters())
    for _ in range(STEPS):
        x, y = batch()
        model.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def style(model: Any, _optimizer: Any, _after: Any) -> None:
    image = torch.randn(16, 4, requires_grad=True)
    optimizer = torch.optim.Adam([image], 0.1)
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(image).square().mean().backward()
        optimizer.step()


@pytest.mark.parametrize("loop", [by_hand, attack, saliency, other, style])
def test_hard_negatives(tmp_path: Path, loop: Any) -> None:
    assert "missing-step" not in codes(tmp_path, Net(), loop)


def test_a_step_that_is_missing(tmp_path: Path) -> None:
    assert codes(tmp_path, Net(), never)[0] == "missing-step"
