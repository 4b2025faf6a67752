"""Monitors: statistics against torch, dead units against brute force, calls kept apart."""

import pytest
import torch
from torch import nn

from nethook.editing.callbacks.monitors import ActivationStats, DeadUnits, Forwards
from nethook.errors import NoSuchSiteError, OptionError


@pytest.fixture
def forwards():
    return Forwards()


@pytest.mark.parametrize("shape", [(3,), (4, 5), (2, 3, 4), (1,)])
def test_statistics_are_those_of_torch(forwards, shape):
    stats = ActivationStats(forwards)
    values = [torch.randn(shape, dtype=torch.float64) for _ in range(3)]
    for value in values:
        stats(value, "fc1")
    for name in ("mean", "min", "max"):
        expected = [getattr(value, name)().item() for value in values]
        assert stats["fc1"][name] == pytest.approx(expected)
    std = [value.std().item() if value.numel() > 1 else 0.0 for value in values]
    assert stats["fc1"]["std"] == pytest.approx(std)


def test_an_expanded_tensor_counts_every_element_that_it_shows(forwards):
    stats = ActivationStats(forwards)
    value = torch.tensor([[1.0], [2.0], [6.0]]).expand(3, 4)
    stats(value, "fc1")
    written_out = value.clone()
    assert stats["fc1"]["mean"] == [3.0]
    assert stats["fc1"]["std"] == pytest.approx([written_out.std().item()])


def test_the_first_tensor_of_a_nested_output_counts(forwards):
    stats = ActivationStats(forwards)
    stats((None, [torch.full((2,), 7.0), torch.zeros(2)]), "lstm")
    stats("no tensor", "other")
    assert stats["lstm"]["mean"] == [7.0]
    assert list(stats) == ["lstm"]


def test_calls_in_one_forward_are_kept_apart(forwards):
    stats = ActivationStats(forwards)
    for number in (1, 2):
        forwards.number, forwards.running = number, True
        stats(torch.full((2,), 1.0 * number), "relu")
        stats(torch.full((2,), 10.0 * number), "relu")
    assert list(stats) == ["relu, call 0", "relu, call 1"]
    assert len(stats) == 2
    assert stats["relu, call 0"]["mean"] == [1.0, 2.0]
    assert stats["relu, call 1"]["mean"] == [10.0, 20.0]


def test_a_name_that_was_not_seen_lists_those_that_were(forwards):
    stats = ActivationStats(forwards)
    with pytest.raises(NoSuchSiteError, match="Nothing has been seen yet"):
        stats["fc1"]
    stats(torch.ones(1), "fc1")
    with pytest.raises(NoSuchSiteError, match=r"nothing was seen at 'fc2'. Seen: .*fc1"):
        stats["fc2"]
    stats.reset()
    assert len(stats) == 0


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_a_unit_is_dead_that_was_zero_in_every_element(forwards, dim):
    torch.manual_seed(0)
    monitor = DeadUnits(forwards, dim)
    values = [
        torch.randn(4, 3, 5).index_fill(dim, torch.tensor(units), 0) for units in ([0, 1], [1])
    ]
    for value in values:  # unit 0 is zero in one batch only
        monitor(value, "relu")
    by_unit = torch.cat([value.movedim(dim, 0).flatten(1) for value in values], 1)
    expected = (by_unit == 0).all(1)
    assert expected.nonzero().tolist() == [[1]]
    assert torch.equal(monitor["relu"], expected)
    assert monitor.share("relu") == pytest.approx(expected.float().mean().item())


def test_the_kind_of_the_module_says_where_units_are(forwards):
    monitor = DeadUnits(forwards, None, {"conv": nn.Conv2d(1, 3, 1), "fc": nn.Linear(1, 2)}.get)
    monitor(torch.zeros(2, 3, 4, 4), "conv")
    monitor(torch.zeros(5, 4, 2), "fc")
    assert len(monitor["conv"]) == 3
    assert len(monitor["fc"]) == 2
    assert repr(monitor) == "<dead units, conv: 3 of 3, fc: 2 of 2>"


def test_a_dimension_that_the_output_lacks_is_refused(forwards):
    with pytest.raises(OptionError) as caught:
        DeadUnits(forwards, 2)(torch.zeros(3, 3), "fc1")
    assert str(caught.value) == (
        "`unit_dim` must be a dimension of the output of 'fc1', which has 2; got 2."
    )
