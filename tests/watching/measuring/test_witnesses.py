"""Whether a step has changed any weight."""

from __future__ import annotations

import pytest
import torch

from nethook.watching.measuring.witnesses import WITNESSES, Witnesses


def test_versions_tell_writes_through_torch():
    parameters = [torch.zeros(3), torch.zeros(2)]
    witnesses = Witnesses(parameters)
    before = witnesses.versions()
    parameters[1].add_(1)
    assert [now - then for now, then in zip(witnesses.versions(), before, strict=True)] == [0, 1]


@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.bfloat16, torch.int8])
def test_coordinates_tell_writes_past_torch(kind):
    parameter = torch.ones(5, dtype=kind)
    witnesses = Witnesses([parameter])
    before = witnesses.some_weights()
    assert not witnesses.have_changed(before)
    parameter.data.mul_(2)
    assert witnesses.have_changed(before)


def test_nan_is_compared_by_its_bits():
    parameter = torch.full((4,), float("nan"))
    witnesses = Witnesses([parameter])
    assert not witnesses.have_changed(witnesses.some_weights())


def test_a_few_parameters_and_coordinates_stand_for_all():
    parameters = [torch.zeros(10_000) for _ in range(5 * WITNESSES)]
    some = Witnesses(parameters).some_weights()
    assert WITNESSES <= len(some) <= WITNESSES + 1
    assert all(len(weights) <= 64 for weights in some)


def test_what_cannot_be_read_is_left_out():
    parameters = [
        torch.zeros(0),
        torch.zeros(4, 4).t()[1:],  # not contiguous
        torch.zeros(3, dtype=torch.complex64).conj(),
        torch.zeros(3).to_sparse(),
        torch.zeros(2, device="meta"),
    ]
    witnesses = Witnesses(parameters)
    assert witnesses.some_weights() == []
    assert not witnesses.have_changed([])


def test_tensors_of_inference_mode_have_no_version():
    with torch.inference_mode():
        parameter = torch.zeros(3)
    assert Witnesses([parameter]).versions() == []
