"""Cosines of updates in a row."""

from __future__ import annotations

import pytest
import torch

from nethook.watching.measuring.parameter_numbers.flat_cosines import FlatCosines
from nethook.watching.measuring.parameter_numbers.flat_parameters import (
    FlatParameters,
    ParametersChangedError,
)
from tests.watching.fakes import facts_of, field, journal

MOVES = ([1.0, 0.0], [1.0, 1.0], [-1.0, 1.0])


def made():
    of = journal()
    [facts] = facts_of(torch.zeros(2))
    return of, facts, FlatCosines(FlatParameters(of, [facts]), of)


def look(cosines, step):
    following = cosines.find(step)
    cosines.look(step)
    return following


def test_each_update_is_compared_with_the_one_before():
    of, facts, cosines = made()
    followed = [look(cosines, 5)]
    for step, move in enumerate(MOVES, start=6):
        with torch.no_grad():
            facts.parameter.add_(torch.tensor(move))
        followed.append(look(cosines, step))
    assert followed == [False, True, True, True]
    assert field(of, "p0", "update_cosine", "count") == 2
    assert field(of, "p0", "update_cosine", "max") == pytest.approx(0.5**0.5)
    assert field(of, "p0", "update_cosine", "min") == pytest.approx(0.0, abs=1e-12)


def test_a_step_that_was_left_out_begins_anew():
    of, facts, cosines = made()
    look(cosines, 0)
    for step, move in zip((1, 3, 4), MOVES, strict=True):
        with torch.no_grad():
            facts.parameter.add_(torch.tensor(move))
        assert look(cosines, step) is (step != 3)
    assert field(of, "p0", "update_cosine", "count") == 0


def test_whoever_knows_where_weights_lie_saves_a_search_once():
    _, facts, cosines = made()
    place = facts.parameter.data_ptr()
    kept = facts.parameter.data
    facts.parameter.data = torch.ones(3)
    cosines.lie_at([place])
    look(cosines, 0)
    with pytest.raises(ParametersChangedError):
        look(cosines, 1)
    assert kept.tolist() == [0.0, 0.0]
