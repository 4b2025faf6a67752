"""Numbers on their way from a device: never waited for, in order, bounded."""

from __future__ import annotations

import pytest
import torch

from nethook.watching.losses.late import MOST, Late
from tests.watching.late_device import Elsewhere, Event, device

__all__ = ["device"]  # a fixture


def elsewhere(*values: float) -> torch.Tensor:
    return torch.tensor(values).as_subclass(Elsewhere)


def test_on_the_cpu_there_is_nothing_to_wait_for():
    got = []
    Late().put(torch.tensor([1.0, 2.0]), got.append)
    assert got == [[1.0, 2.0]]


@pytest.mark.usefixtures("device")
def test_elsewhere_numbers_are_told_once_they_have_arrived():
    late, got = Late(), []
    late.put(elsewhere(1.0), got.append)
    late.put(elsewhere(2.0, 3.0), got.append)
    late.poll()
    assert (got, len(late)) == ([], 2)
    Event.arrived = True
    late.poll()
    assert (got, len(late), Event.waited) == ([[1.0], [2.0, 3.0]], 0, 0)


@pytest.mark.usefixtures("device")
def test_the_end_waits_for_the_rest():
    late, got = Late(), []
    late.put(elsewhere(1.0), got.append)
    late.flush()
    assert (got, Event.waited) == ([[1.0]], 1)


@pytest.mark.usefixtures("device")
def test_no_more_than_some_are_under_way():
    late, got = Late(), []
    for number in range(2 * MOST):
        late.put(elsewhere(float(number)), got.append)
    assert len(late) == MOST
    late.flush()
    assert got == [[float(number)] for number in range(MOST, 2 * MOST)]
