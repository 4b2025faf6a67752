"""The slots of parameters, and sums of squares."""

from __future__ import annotations

import math

import pytest
import torch

from nethook.watching.measuring.parameter_numbers.parameter_slots import ParameterSlots
from tests.watching.fakes import facts_of, field, journal


def test_a_series_has_one_slot_which_is_made_when_it_is_used():
    of = journal()
    [first, second] = facts_of(torch.ones(2), torch.ones(2))
    slots = ParameterSlots(of)
    assert of.catalogue.keys == []
    assert slots.of(first, "params") is slots.of(first, "params")
    assert slots.of(first, "params") is not slots.of(first, "updates")
    assert slots.of(second, "params") is not slots.of(first, "params")
    assert [key[:2] for key in of.catalogue.keys] == [
        ("p0", "params"), ("p0", "updates"), ("p1", "params"),
    ]  # fmt: skip


def test_a_tensor_is_measured_times_its_factor():
    of = journal()
    [facts] = facts_of(torch.ones(2))
    square = ParameterSlots(of).measure(facts, "params", torch.tensor([4.0, 8.0]), 0.25)
    assert square == pytest.approx(5.0)
    assert field(of, "p0", "params", "mean") == 1.5


def test_a_part_counts_once_for_each_part():
    [facts] = facts_of(torch.ones(2))
    facts.part = facts.part._replace(parts=3)
    assert ParameterSlots(journal()).measure(facts, "params", torch.ones(2)) == pytest.approx(6.0)


@pytest.mark.parametrize("tensor", [torch.ones(2).to_sparse(), torch.ones(2, device="meta")])
def test_what_cannot_be_read_has_no_square(tensor):
    [facts] = facts_of(torch.ones(2))
    assert math.isnan(ParameterSlots(journal()).measure(facts, "params", tensor))
