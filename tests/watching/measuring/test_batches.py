"""What goes into a model and comes out of it: sizes, repeats, spread."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from nethook.runs import names
from nethook.watching.measuring.batches import Batches, distinct, spread
from nethook.watching.measuring.loop_numbers import LoopNumbers, Pending
from tests.watching.fakes import field, session


@pytest.fixture
def of():
    of = session(on_outputs=True)
    of.lull = SimpleNamespace(leave=lambda: None)
    of.pending = Pending(of)
    of.numbers = LoopNumbers(of)
    of.off_rows = lambda: of.train
    return of


def test_the_spread_of_samples_against_numpy():
    x = torch.randn(7, 5)
    numbers = x.double().numpy()
    expected = np.sqrt(numbers.var(0).mean()) / np.sqrt((numbers**2).mean())
    assert spread(x).item() == pytest.approx(expected, rel=1e-9)
    assert spread(torch.ones(4, 3)).item() == 0
    assert spread(torch.zeros(4, 3)).item() == 0


def test_different_values_are_counted():
    assert distinct(torch.tensor([1.0, 2.0, 2.0, 1.0])).item() == 2
    assert distinct(torch.tensor([1 + 1j, 1 - 1j, 1 + 1j])).item() == 2
    assert distinct(torch.zeros(100)).item() == 1
    assert distinct(torch.arange(50)).item() == 50


def test_sizes_and_repeated_batches(of):
    batches = Batches(of)
    same = torch.randn(4, 3)
    for of.step, batch in enumerate((same, same, torch.randn(2, 3))):
        batches.inputs("", (batch,), {})
        of.numbers.end_step(of.step)
    address = names.batch_address("")
    assert field(of, address, names.BATCH_SIZE, "mean") == pytest.approx(10 / 3)
    assert field(of, address, names.REPEATED, "count") == 2
    assert field(of, address, names.REPEATED, "mean") == 0.5


def test_only_the_first_batch_of_a_step_counts(of):
    batches = Batches(of)
    for _ in range(3):
        batches.inputs("", (torch.ones(4, 3),), {})
    of.numbers.end_step(0)
    assert field(of, names.batch_address(""), names.BATCH_SIZE, "count") == 1
    assert field(of, "", names.INPUTS, "tensors") == 3  # all of them are measured


def test_several_inputs_have_series_of_their_own(of):
    Batches(of).inputs("", (torch.ones(2),), {"mask": torch.zeros(2)})
    assert field(of, "", names.INPUTS, "mean") == 1
    assert field(of, "", f"{names.INPUTS}:1", "mean") == 0


def test_a_batch_that_is_not_finite_is_flagged(of):
    Batches(of).inputs("G", (torch.tensor([1.0, float("nan")]),), {})
    assert of.flags == [("G", names.INPUTS)]


def test_outputs_of_a_model_that_has_a_tap_itself_are_not_measured_twice(of):
    batches = Batches(of)
    of.forwards = 1
    batches.leaves.add("")
    batches.outputs("", nn.Identity(), (), torch.ones(2, 2))
    assert of.catalogue.keys[-1][1] == names.OUTPUT_SPREAD
    assert names.OUTPUTS not in [quantity for _, quantity, _ in of.catalogue.keys]
