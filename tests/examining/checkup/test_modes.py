"""Evaluation twice, and training once."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from nethook.examining.checkup.batch import as_batch
from nethook.examining.checkup.modes import Modes, compare

BATCH = as_batch(torch.randn(16, 8, generator=torch.Generator().manual_seed(0)), None)


class Calls(nn.Module):
    """A layer, and then a function of its output and of the training flag."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.fc, self.function = nn.Linear(8, 8), function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(self.fc(x), self.training)


def test_a_model_that_is_always_the_same() -> None:
    assert compare(nn.Linear(8, 2), BATCH) == Modes(True, True, (), (), ())


def test_modules_that_mean_to_differ() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.BatchNorm1d(8))
    assert compare(model, BATCH) == Modes(True, False, ("1", "2"), (), ())


def test_a_flag_that_nobody_declares() -> None:
    modes = compare(Calls(lambda x, training: x * (2 if training else 1)), BATCH)
    assert modes == Modes(True, False, (), (), ())


def test_dropout_that_never_stops() -> None:
    modes = compare(Calls(lambda x, training: F.dropout(x, 0.5)), BATCH)
    assert not modes.repeats
    (address,) = modes.dropouts
    assert "dropout" in address


def test_other_random_numbers() -> None:
    modes = compare(Calls(lambda x, training: x + torch.randn_like(x)), BATCH)
    assert not modes.repeats
    assert modes.dropouts == ()
    (address,) = modes.chance
    assert "randn_like" in address


def test_differences_in_the_last_digits_are_none() -> None:
    tiny = compare(Calls(lambda x, training: x * (1 + 1e-6 * training)), BATCH)
    assert tiny.agrees
    large = compare(Calls(lambda x, training: x * (1 + 1e-2 * training)), BATCH)
    assert not large.agrees
