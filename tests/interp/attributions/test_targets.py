"""Targets: every form gives the number that plain indexing gives, and wrong ones are refused."""

import pytest
import torch

from nethook.errors import OptionError
from nethook.interp.attributions.targets import Target

SCORES = torch.arange(12.0).reshape(3, 4)
ALL = torch.arange(3)


def settled(given, output=SCORES, rows=3):
    target = Target(given)
    target.settle(output, rows)
    return target


@pytest.mark.parametrize(
    ("given", "output", "expected"),
    [
        (2, SCORES, SCORES[:, 2]),
        ([0, 3, 1], SCORES, torch.tensor([0.0, 7.0, 9.0])),
        (torch.tensor([0, 3, 1]), SCORES, torch.tensor([0.0, 7.0, 9.0])),
        ("top", SCORES, SCORES[:, 3]),
        ((1, 0), SCORES.reshape(3, 2, 2), SCORES[:, 2]),
        (lambda out: out[:, 0] - out[:, 1], SCORES, SCORES[:, 0] - SCORES[:, 1]),
        (None, SCORES[:, 0], SCORES[:, 0]),
        (None, SCORES[:, :1], SCORES[:, 0]),
    ],
)
def test_every_form(given, output, expected):
    assert torch.equal(settled(given, output).of(output, ALL, 3), expected)


def test_rows_that_are_copies_of_others():
    which = torch.tensor([2, 0, 2])
    output = SCORES[which]
    assert settled([0, 3, 1]).of(output, which, 3).tolist() == [9.0, 0.0, 9.0]
    twice = SCORES.repeat(2, 1)
    mask = torch.tensor([1.0, 2.0, 3.0])  # one number for each row of the batch
    target = settled(lambda out: out[:, 1] * mask)
    assert target.whole
    assert target.of(twice, ALL.repeat(2), 3).tolist() == (SCORES[:, 1] * mask).repeat(2).tolist()


def test_a_nested_output_is_split_for_a_function():
    target = settled(lambda out: out["a"][0][:, 0], {"a": (SCORES,), "loss": torch.tensor(1.0)})
    doubled = {"a": (SCORES.repeat(2, 1),), "loss": torch.tensor(1.0)}
    assert target.of(doubled, ALL.repeat(2), 3).tolist() == SCORES[:, 0].repeat(2).tolist()


@pytest.mark.parametrize(
    ("given", "output", "match"),
    [
        (9, SCORES, r"must lie inside the \(4,\) scores of a row; got 9"),
        ([0, 4, 0], SCORES, r"must lie inside"),
        ([0, 1], SCORES, r"a class for each of the 3 rows; got 2"),
        (None, SCORES, r"must say which of \(3, 4\) numbers is explained.*got None"),
        (1, SCORES.reshape(3, 2, 2), r"must name one number of each row .*a class over a region"),
        ("top", SCORES.reshape(3, 2, 2), r"must be an index or a function"),
        (lambda out: out.mean(), SCORES, r"one number per row of the batch.*Do not average"),
        (0, SCORES[:2], r"one row of scores for each of the 3 rows"),
    ],
)
def test_what_does_not_fit_is_refused(given, output, match):
    with pytest.raises(OptionError, match=match):
        settled(given, output)


@pytest.mark.parametrize("given", ["best", True, 1.5, torch.tensor([0.5])])
def test_what_means_nothing_is_refused(given):
    with pytest.raises(OptionError, match=r"`target` must be a class \(3\), one class per row"):
        Target(given)
