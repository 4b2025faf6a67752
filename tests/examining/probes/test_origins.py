"""Which element of the target stands at each place of the loss."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nethook.examining.loss_calls import LossCall
from nethook.examining.probes.origins import places_of, prediction_row, rows_that
from nethook.examining.rehearsal import Rehearsal
from tests.examining.experiments.steps import step

TAGS = torch.randint(3, (4, 6))


def made(then: Callable[[torch.Tensor], torch.Tensor]) -> Rehearsal:
    return step(nn.Linear(5, 3), torch.randn(4, 6, 5), then=then).rehearsal()


@pytest.mark.parametrize(
    "lay_out",
    [
        lambda y: y.reshape(-1),
        lambda y: y.t().reshape(-1),
        lambda y: y.permute(1, 0).flatten(),
        lambda y: y[:, :].contiguous().view(24),
        lambda y: y.T.long().reshape(24),
    ],
)
def test_layouts_are_followed(lay_out: Callable[[torch.Tensor], torch.Tensor]) -> None:
    rehearsal = made(lambda out: F.cross_entropy(out.reshape(-1, 3), lay_out(TAGS)))
    places = places_of(rehearsal)
    assert places is not None
    assert places.shape == (4, 6)
    order = lay_out(torch.arange(24).reshape(4, 6))
    assert torch.equal(places.numbers, order)
    assert torch.equal(places.along(0), order // 6)
    assert torch.equal(places.along(1), order % 6)


def test_slices_are_followed() -> None:
    rehearsal = made(lambda out: F.cross_entropy(out[:, :-1].reshape(-1, 3), TAGS[:, 1:].flatten()))
    places = places_of(rehearsal)
    assert places is not None
    assert torch.equal(places.along(1), torch.arange(1, 6).repeat(4))


def test_samples_that_were_chosen_are_where_a_target_begins() -> None:
    everything, index = torch.randint(3, (40, 6)), torch.randperm(40)[:4]
    rehearsal = made(lambda out: F.cross_entropy(out.reshape(-1, 3), everything[index].T.flatten()))
    places = places_of(rehearsal)
    assert places is not None
    assert places.shape == (4, 6)
    assert torch.equal(places.along(0), torch.arange(4).repeat(6))


def test_what_is_computed_has_no_place() -> None:
    rehearsal = made(lambda out: F.mse_loss(out, F.one_hot(TAGS, 3).float()))
    assert places_of(rehearsal) is None


def test_rows_of_a_prediction() -> None:
    moved = torch.zeros(4, 3, 6, dtype=torch.bool)
    moved[1, 2, 5] = True
    rows = rows_that(moved, LossCall("cross_entropy", moved.float(), TAGS))
    assert rows is not None
    assert rows.nonzero().tolist() == [[1, 5]]
    assert rows_that(moved, LossCall("mse", moved.float(), TAGS)) is None
    same = rows_that(moved, LossCall("mse", moved.float(), moved.float()))
    assert same is moved
    by_hand = LossCall("by hand", None, TAGS[..., None], {"operation": "gather"})
    rows = rows_that(moved.transpose(1, 2), by_hand)
    assert rows is not None
    assert rows.nonzero().tolist() == [[1, 5, 0]]


def test_the_row_beside_a_target() -> None:
    prediction = torch.randn(4, 3, 6)
    row = prediction_row(prediction, LossCall("cross_entropy", prediction, TAGS), 6 + 5)
    assert row is not None
    assert torch.equal(row, prediction[1, :, 5])
    values = torch.randn(4, 6)
    row = prediction_row(values, LossCall("mse", values, values), 6 + 5)
    assert row is not None
    assert torch.equal(row, values[1, 5])
