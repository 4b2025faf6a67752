"""What goes into a model and comes out of it: sizes, repeats, spread."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from nethook.runs import names
from nethook.watching.measuring.batches import Batches, distinct, spread
from nethook.watching.measuring.loop_numbers import LoopNumbers
from tests.watching.fakes import at, field, journal


@pytest.fixture
def of():
    of = journal()
    of.numbers = LoopNumbers(of)
    of.batches = Batches(of, of.numbers, of)
    return of


def end_step(of, step):
    of.numbers.keep(step, [])
    of.numbers.fold(of.numbers.take())


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
    same = torch.randn(4, 3)
    for step, batch in enumerate((same, same, torch.randn(2, 3))):
        at(of, step)
        of.batches.call_begins("", nn.Identity(), (batch,), {})
        end_step(of, step)
    address = names.batch_address("")
    assert field(of, address, names.BATCH_SIZE, "mean") == pytest.approx(10 / 3)
    assert field(of, address, names.REPEATED, "count") == 2
    assert field(of, address, names.REPEATED, "mean") == 0.5


def test_only_the_first_batch_of_a_step_counts(of):
    for _ in range(3):
        of.batches.call_begins("", nn.Identity(), (torch.ones(4, 3),), {})
    end_step(of, 0)
    assert field(of, names.batch_address(""), names.BATCH_SIZE, "count") == 1
    assert field(of, "", names.INPUTS, "tensors") == 3  # all of them are measured


def test_sizes_in_evaluations_are_kept_once_each(of):
    of.clock.calls.training = False
    for size in (5, 5, 1, *range(20, 40)):
        of.batches.call_begins("G", nn.Identity(), (torch.ones(size, 3),), {})
    assert of.writer.infos["evaluation_sizes"] == {"G": [5, 1, 20, 21, 22, 23, 24, 25]}


def test_several_inputs_have_series_of_their_own(of):
    of.batches.call_begins("", nn.Identity(), (torch.ones(2),), {"mask": torch.zeros(2)})
    assert field(of, "", names.INPUTS, "mean") == 1
    assert field(of, "", f"{names.INPUTS}:1", "mean") == 0


def test_a_batch_that_is_not_finite_is_flagged(of):
    of.batches.call_begins("G", nn.Identity(), (torch.tensor([1.0, float("nan")]),), {})
    assert of.flags == [("G", names.INPUTS)]


def test_outputs_of_a_model_that_has_a_tap_itself_are_not_measured_twice(of):
    of.clock.forwards = 1
    of.batches.leaves.add("")
    of.batches.call_ends("", nn.Identity(), (), torch.ones(2, 2))
    assert of.catalogue.keys[-1][1] == names.OUTPUT_SPREAD
    assert names.OUTPUTS not in [quantity for _, quantity, _ in of.catalogue.keys]
