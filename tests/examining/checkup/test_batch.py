"""The batch of a pre-flight check."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import nethook
from nethook.errors import InputsError
from nethook.examining.checkup.batch import Batch, as_batch

X, Y = torch.arange(24.0).reshape(8, 3), torch.arange(8)


def test_inputs_and_targets() -> None:
    batch = as_batch((X, Y), nn.CrossEntropyLoss())
    assert torch.equal(batch.inputs.args[0], X)
    assert batch.targets is Y
    assert batch.samples == 8
    alone = as_batch(nethook.inputs(X, labels=Y), None)
    assert alone.targets is None
    assert set(alone.inputs.kwargs) == {"labels"}


def test_every_call_gets_copies() -> None:
    batch = as_batch((X, Y), nn.MSELoss())
    batch.inputs.args[0].zero_()
    assert torch.equal(batch.inputs.args[0], X)
    assert X.any()


@pytest.mark.parametrize(
    ("inputs", "targets", "samples"),
    [(X, Y, 8), (X, Y[:4], 0), (X, torch.tensor(1.0), 0), ((X, X), Y, 8), (X, None, 8)],
)
def test_how_many_samples(inputs: Any, targets: Any, samples: int) -> None:
    assert as_batch((inputs, targets), nn.MSELoss()).samples == samples


def test_the_first_samples() -> None:
    batch = as_batch(((X, {"more": X}), (Y, Y)), nn.MSELoss())
    few = batch.first(3)
    assert few.samples == 3
    assert torch.equal(few.inputs.args[1]["more"], X[:3])
    assert torch.equal(few.targets[1], Y[:3])
    assert batch.first(8) is batch
    odd = as_batch((X, Y[:4]), nn.MSELoss())
    assert odd.first(3) is odd  # the first dimension does not count samples


def test_a_loss_by_function_attribute_or_key() -> None:
    output = torch.ones(8, 3, requires_grad=True)
    value = output.sum()
    given = as_batch((X, X), nn.MSELoss())
    expected = nn.functional.mse_loss(output, X)
    assert torch.equal(given.loss(nn.MSELoss(), output), expected)
    own = Batch(given.given, None)
    assert own.loss(None, SimpleNamespace(loss=value)) is value
    assert own.loss(None, {"loss": value}) is value


def test_targets_that_a_loss_writes_to_stay() -> None:
    def writes(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return (output - target.zero_()).sum()

    batch = as_batch((X, X.clone()), writes)
    batch.loss(writes, torch.ones(8, 3, requires_grad=True))
    assert torch.equal(batch.targets, X)


@pytest.mark.parametrize(
    ("loss", "output", "words"),
    [
        (None, X, r"Without `loss_fn` the model's output must have a `\.loss`; got a Tensor\."),
        (None, {"logits": X}, "got a dict"),
        (lambda output, target: None, X, "`loss_fn` must give a tensor with one number; got None"),
        (lambda output, target: 3.0, X, "one number; got a float"),
        (lambda output, target: output, X, r"got shape \(8, 3\)"),
        (lambda output, target: output.sum(), X, "`loss_fn` must give a loss with a gradient"),
    ],
)
def test_what_is_no_loss(loss: Any, output: Any, words: str) -> None:
    with pytest.raises(InputsError, match=words):
        Batch(nethook.inputs(X), Y).loss(loss, output)
