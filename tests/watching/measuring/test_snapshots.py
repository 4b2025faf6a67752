"""Outputs that are kept: at which steps, how many samples, as what."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from nethook.errors import OptionError
from nethook.hooks.hook import Owner
from nethook.watching.measuring.snapshots import Snapshots, SnapshotTap, checked, is_due
from tests.watching.fakes import at, journal


def test_the_steps_are_the_first_four_and_two_in_each_doubling():
    assert [step for step in range(100) if is_due(step)] == [
        0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96,
    ]  # fmt: skip


def test_the_first_samples_of_the_first_call_of_a_step_are_kept():
    of = journal()
    store = Snapshots(of)
    tap = SnapshotTap(Owner("test"), "fc", of, store, 2)
    outputs = torch.randn(3, 5, 4, dtype=torch.float64)
    for step, output in zip((0, 0, 5), outputs, strict=True):
        at(of, step)
        tap(nn.Identity(), (), output)
    store.end_window()
    [(address, step, values)] = of.writer.pictures
    assert (address, step) == ("fc", 0)
    np.testing.assert_array_equal(values, outputs[0, :2].float().numpy())
    store.end_window()
    assert len(of.writer.pictures) == 1


def test_a_copy_is_kept_and_not_the_tensor():
    of = journal()
    store = Snapshots(of)
    output = torch.ones(2, 2)
    store.add("fc", output)
    output.zero_()
    store.end_window()
    assert of.writer.pictures[0][2].tolist() == [[1, 1], [1, 1]]


def test_evaluations_and_odd_outputs_are_not_kept():
    of = journal()
    of.clock.calls.training = False
    store = Snapshots(of)
    tap = SnapshotTap(Owner("test"), "fc", of, store, 2)
    tap(nn.Identity(), (), torch.ones(2, 2))
    of.clock.calls.training = True
    tap(nn.Identity(), (), torch.tensor(1.0))  # no samples
    tap(nn.Identity(), (), torch.ones(2, 2).to_sparse())
    tap(nn.Identity(), (), torch.ones(1).expand(2, 1 << 30))  # larger than memory
    store.end_window()
    assert of.writer.pictures == []


def test_complex_outputs_are_kept_as_their_size():
    of = journal()
    store = Snapshots(of)
    store.add("fft", torch.tensor([3 + 4j]))
    store.end_window()
    assert of.writer.pictures[0][2].tolist() == [5.0]


@pytest.mark.parametrize("samples", [0, -1, 1.5, True, None])
def test_a_number_of_samples_is_a_whole_one(samples):
    assert checked({"conv": 3}) == {"conv": 3}
    with pytest.raises(OptionError, match=r"^`snapshots` must give each layer a number .* for 'c'"):
        checked({"c": samples})
