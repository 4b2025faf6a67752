"""Which parameters lie flat, and where they and their gradients are found."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nethook.stats.tables import start_of
from nethook.watching.measuring.parameter_numbers.flat_parameters import (
    FlatParameters,
    ParametersChangedError,
)
from tests.watching.fakes import facts_of, journal


def test_those_lie_flat_that_are_one_piece_of_cpu_memory_in_order():
    facts = facts_of(
        torch.ones(3, 2),
        torch.ones(3, 2).t(),
        torch.ones(0),
        torch.ones(2, 3, 2, 2).contiguous(memory_format=torch.channels_last),
        torch.ones(4).half(),
        torch.ones(2, device="meta"),
        torch.ones(2).to_sparse(),
    )
    flat = FlatParameters(journal(), facts)
    assert flat.facts == [facts[0], facts[4]]
    assert flat.sizes == [24, 8]


def test_rows_of_a_parameter_stand_side_by_side():
    of = journal()
    flat = FlatParameters(of, facts_of(torch.ones(2), torch.ones(2)))
    quantities = ["params", "param_grads", "unclipped_grads", "updates"]
    keys = [(f"p{at}", quantity) for at in range(2) for quantity in quantities]
    assert [key[:2] for key in of.catalogue.keys] == keys
    assert flat.table("updates").lines["row"].tolist() == [3, 7]
    assert flat.table().lines["row"].tolist() == [0, 0]


def test_weights_are_found_where_they_are_now():
    [facts] = facts_of(torch.ones(3))
    flat = FlatParameters(journal(), [facts])
    table = flat.table("params")
    moved = torch.ones(3)
    facts.parameter.data = moved
    flat.find(table)
    assert table.address.tolist() == [start_of(moved)]
    facts.parameter.data = torch.ones(4)
    with pytest.raises(ParametersChangedError):
        flat.find(table)


def test_gradients_that_do_not_lie_flat_are_named():
    facts = facts_of(torch.ones(3), torch.ones(2, 2), torch.ones(4), torch.ones(5))
    flat = FlatParameters(journal(), facts)
    facts[0].parameter.grad = torch.ones(3)
    facts[1].parameter.grad = torch.ones(2, 2).t()
    facts[2].parameter.grad = torch.ones(4).to_sparse()
    table, counts = flat.table("param_grads"), np.zeros(4, np.int64)
    assert flat.find_grads(table, counts) == [1, 2]
    assert table.address.tolist() == [start_of(facts[0].parameter.grad), 0, 0, 0]
    assert flat.find_grads(table) == [1, 2]
    assert counts.tolist() == [1, 0, 0, 0]


class Held:
    """A parameter that is spread over ranks, of which this process has one part."""

    def __init__(self, parameter):
        self._local_tensor = self.grad = parameter


def spread(*tensors):
    """Facts of parameters with a part here; their gradients are the parts' own."""
    facts = facts_of(*tensors)
    for each in facts:
        each.parameter = Held(each.local)
        each.held = each.local
        each.part = each.part._replace(parts=2)
    return facts


def test_the_squares_of_parts_count_once_for_each():
    facts = [*spread(torch.full((2,), 3.0)), *facts_of(torch.ones(4))]
    flat = FlatParameters(journal(), facts)
    table = flat.table("params")
    flat.find(table)
    table.fold()
    assert flat.square_of(table) == pytest.approx(2 * 18 + 4)


def test_a_part_that_is_another_tensor_has_changed():
    facts = spread(torch.ones(2))
    flat = FlatParameters(journal(), facts)
    flat.find(flat.table("params"))
    facts[0].parameter._local_tensor = torch.ones(2)
    with pytest.raises(ParametersChangedError):
        flat.find(flat.table("params"))
