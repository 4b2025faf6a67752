"""Models that were called and never trained."""

from __future__ import annotations

import torch
from torch import nn

from nethook.running.detecting.untouched import Untouched


def test_a_call_leaves_a_model_as_it_was() -> None:
    model = nn.Linear(3, 2)
    start = Untouched({"model": model})
    model(torch.ones(1, 3))
    assert start.still()


def test_a_gradient_is_a_sign_of_training() -> None:
    model = nn.Linear(3, 2)
    start = Untouched({"model": model})
    model(torch.ones(1, 3)).sum().backward()
    assert not start.still()


def test_weights_that_are_moved_by_hand_are_one_too() -> None:
    model = nn.Linear(3, 2)
    start = Untouched({"model": model})
    model(torch.ones(1, 3)).sum().backward()
    with torch.no_grad():
        model.weight -= 0.1 * model.weight.grad
    model.zero_grad(set_to_none=True)
    assert not start.still()


def test_a_model_that_is_gone_cannot_be_trained() -> None:
    model = nn.Linear(3, 2)
    start = Untouched({"model": model})
    del model
    assert start.still()
