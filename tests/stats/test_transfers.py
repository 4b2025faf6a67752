"""Numbers on their way from a device: never waited for, in order, bounded."""

from __future__ import annotations

import pytest
import torch

from nethook.stats.transfers import MOST, Transfers, fetched
from tests.stats.late_device import Elsewhere, Event, device

__all__ = ["device"]  # a fixture


def elsewhere(*values: float) -> torch.Tensor:
    return torch.tensor(values).as_subclass(Elsewhere)


def test_on_the_cpu_there_is_nothing_to_wait_for():
    got = []
    Transfers().put(torch.tensor([1.0, 2.0]), got.append)
    assert got == [[1.0, 2.0]]


@pytest.mark.usefixtures("device")
def test_elsewhere_numbers_are_told_once_they_have_arrived():
    late, got = Transfers(), []
    late.put(elsewhere(1.0), got.append)
    late.put(elsewhere(2.0, 3.0), got.append)
    late.poll()
    assert (got, len(late)) == ([], 2)
    Event.arrived = True
    late.poll()
    assert (got, len(late), Event.waited) == ([[1.0], [2.0, 3.0]], 0, 0)


@pytest.mark.usefixtures("device")
def test_the_end_waits_for_the_rest():
    late, got = Transfers(), []
    late.put(elsewhere(1.0), got.append)
    late.flush()
    assert (got, Event.waited) == ([[1.0]], 1)


@pytest.mark.usefixtures("device")
def test_no_more_than_some_are_under_way():
    late, got = Transfers(), []
    for number in range(2 * MOST):
        late.put(elsewhere(float(number)), got.append)
    assert len(late) == MOST
    late.flush()
    assert got == [[float(number)] for number in range(MOST, 2 * MOST)]


def test_numbers_of_several_types_and_shapes_are_fetched_as_they_are():
    tensors = [
        torch.tensor(0.1, dtype=torch.float32),
        torch.arange(6).reshape(2, 3),
        torch.tensor([], dtype=torch.float64),
        torch.tensor([1 << 52], dtype=torch.int64),
        torch.tensor([float("nan"), float("inf")], dtype=torch.bfloat16),
    ]
    on_host = fetched(tensors)
    assert [numbers.dtype for numbers in on_host] == [torch.float64] * 5
    for numbers, tensor in zip(on_host, tensors, strict=True):
        assert torch.equal(numbers.nan_to_num(7), tensor.reshape(-1).double().nan_to_num(7))


def test_numbers_of_one_type_keep_it():
    big = (1 << 62) + 1  # no float64 is this number
    [first, second] = fetched([torch.tensor([big]), torch.tensor([[2]])])
    assert (first.tolist(), second.tolist()) == ([big], [2])
    assert fetched([]) == []


def test_what_is_kept_stays_until_it_is_fetched_on_every_device():
    transfers, got = Transfers(), []
    transfers.keep(torch.tensor(1.0), got.append)
    transfers.keep(torch.tensor([2, 3]), got.append)
    transfers.poll()
    assert (got, len(transfers)) == ([], 2)
    transfers.fetch()
    assert (got, len(transfers)) == ([[1.0], [2.0, 3.0]], 0)


def test_without_a_limit_nothing_is_dropped():
    transfers, got = Transfers(most=None), []
    for number in range(3 * MOST):
        transfers.keep(torch.tensor(float(number)), got.append)
    transfers.flush()
    assert got == [[float(number)] for number in range(3 * MOST)]


@pytest.mark.usefixtures("device")
def test_a_device_without_pinned_memory_keeps_its_numbers(monkeypatch):
    def no_pinned_memory(*args, **kwargs):
        raise RuntimeError("no pinned memory here")

    monkeypatch.setattr(torch, "empty", no_pinned_memory)
    transfers, got = Transfers(), []
    transfers.put(elsewhere(1.0), got.append)
    transfers.put(elsewhere(2.0), got.append)
    transfers.poll()
    assert (got, len(transfers), len(transfers.under_way)) == ([], 2, 0)
    transfers.fetch()
    assert got == [[1.0], [2.0]]


def test_numbers_of_two_devices_come_in_the_order_in_which_they_were_put():
    transfers, got = Transfers(), []
    for number in range(4):
        vector = torch.tensor([float(number)])
        transfers.keep(vector.as_subclass(Elsewhere) if number % 2 else vector, got.append)
    transfers.fetch()
    assert got == [[0.0], [1.0], [2.0], [3.0]]
