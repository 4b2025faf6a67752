"""Folds keep groups together and classes apart."""

import pytest
import torch

from nethook.errors import OptionError
from nethook.interp.directions.folds import control_labels, make_folds, numbered_groups


def test_no_group_is_in_two_folds_and_folds_are_of_equal_size():
    groups = numbered_groups(torch.arange(60) // 4, 60)
    labels = torch.arange(60) % 2
    folds = make_folds(labels, groups, 5, 0)
    for group in range(15):
        assert len(set(folds[groups == group].tolist())) == 1
    assert torch.bincount(folds).tolist() == [12] * 5
    assert torch.equal(folds, make_folds(labels, groups, 5, 0))
    assert not torch.equal(folds, make_folds(labels, groups, 5, 1))


def test_classes_are_spread_over_folds():
    labels = torch.tensor([0] * 20 + [1] * 10)
    folds = make_folds(labels, None, 5, 0)
    assert torch.bincount(folds[labels == 1]).tolist() == [2] * 5
    numbers = torch.arange(20).double()
    assert all(
        abs(numbers[make_folds(numbers, None, 4, 0) == f].mean() - 9.5) < 2 for f in range(4)
    )


def test_control_labels_are_the_same_labels_elsewhere():
    labels = torch.arange(40) % 2
    shuffled = control_labels(labels, None, 0)
    assert not torch.equal(shuffled, labels)
    assert torch.bincount(shuffled).tolist() == [20, 20]
    groups = torch.arange(40) // 4
    by_group = (groups % 2).long()
    moved = control_labels(by_group, groups, 0)
    assert not torch.equal(moved, by_group)
    assert all(len(set(moved[groups == g].tolist())) == 1 for g in range(10))  # still of the group
    mixed = control_labels(labels, groups, 0)
    assert torch.bincount(mixed).tolist() == [20, 20]


def test_refusals():
    with pytest.raises(OptionError, match="`groups` must have one group per row, 3; got 2"):
        numbered_groups(["a", "b"], 3)
    with pytest.raises(OptionError, match="at most the number of groups, 2; got 5"):
        make_folds(torch.zeros(4).long(), torch.tensor([0, 0, 1, 1]), 5, 0)
