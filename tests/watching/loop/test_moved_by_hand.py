"""Weights that change while no optimizer steps are noticed, and nothing else is taken for that."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import nethook
from nethook.watching.loop.moved_by_hand import MovedByHand


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))


@pytest.fixture
def by_hand(model, tmp_path):
    watch = nethook.watch(model, to=tmp_path / "run.db")
    yield MovedByHand(watch._session.optimizers.held)
    watch.close()


def test_nothing_has_moved_before_a_backward_pass(by_hand):
    assert not by_hand.have_moved()


def test_weights_that_stay_have_not_moved(model, by_hand):
    by_hand.note()
    model(torch.randn(5, 3)).sum().backward()  # moves statistics, which are no weights
    assert not by_hand.have_moved()


@pytest.mark.parametrize(
    "move",
    [
        lambda weight: weight.sub_(0.1),
        lambda weight: weight.set_(weight - 0.1),
        lambda weight: weight.data.sub_(0.1),  # of which no version tells
    ],
    ids=["in place", "another storage", "behind autograd's back"],
)
def test_weights_that_were_written_have_moved_until_the_next_note(model, by_hand, move):
    by_hand.note()
    with torch.no_grad():
        move(model[0].weight)
    assert by_hand.have_moved()
    by_hand.note()
    assert not by_hand.have_moved()
