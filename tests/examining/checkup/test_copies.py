"""Copies to experiment on."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nethook.errors import InputsError
from nethook.examining.checkup.batch import as_batch
from nethook.examining.checkup.copies import set_apart

X, Y = torch.randn(8, 4), torch.randn(8, 2)
BATCH = as_batch((X, Y), nn.MSELoss())


def test_a_copy_has_the_optimizer_of_its_own_parameters() -> None:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    with set_apart(model, BATCH, nn.MSELoss(), optimizer) as copies:
        mine = copies.again()
        assert mine.model is not model
        assert mine.optimizer is not None
        held = mine.optimizer.param_groups[0]["params"]
        assert [id(each) for each in held] == [id(each) for each in mine.model.parameters()]
        mine.model(X).sum().backward()
        mine.optimizer.step()
        assert not torch.equal(mine.model.weight, model.weight)


def test_a_loss_with_parameters_is_copied_with_the_model() -> None:
    model = nn.Linear(4, 2)
    criterion = nn.PReLU()
    criterion.model = model  # shares the model's parameters
    with set_apart(model, BATCH, criterion, None) as copies:
        mine = copies.again()
        assert mine.loss is not criterion
        assert mine.loss.model is mine.model
    function = torch.nn.functional.mse_loss
    with set_apart(model, BATCH, function, None) as copies:
        assert copies.again().loss is function


def test_gradients_and_random_numbers_come_back() -> None:
    model = nn.Linear(4, 2)
    model(X).sum().backward()
    before, state = model.weight.grad, torch.get_rng_state()
    with torch.no_grad(), set_apart(model, BATCH, nn.MSELoss(), None) as copies:
        assert torch.is_grad_enabled()
        assert copies.model.weight.grad is None
        first = torch.rand(3)
    assert model.weight.grad is before
    assert torch.equal(torch.get_rng_state(), state)
    with set_apart(model, BATCH, nn.MSELoss(), None):
        assert torch.equal(torch.rand(3), first)  # the same for every check


def test_wrappers_are_taken_off() -> None:
    model = nn.Linear(4, 2)
    with set_apart(nn.DataParallel(model), BATCH, nn.MSELoss(), None) as copies:
        assert copies.model is model


@pytest.mark.filterwarnings("ignore:Lazy modules")
@pytest.mark.parametrize(
    ("model", "words"),
    [
        (nn.Linear(4, 2, device="meta"), "'weight' is on the meta device"),
        (nn.LazyLinear(2), "'weight' has no shape yet"),
        (nn.Linear(4, 2).requires_grad_(False), "`model` must have a parameter that requires"),
        (nn.ReLU(), "`model` must have a parameter that requires"),
    ],
)
def test_models_that_cannot_be_checked(model: nn.Module, words: str) -> None:
    with pytest.raises(InputsError, match=words), set_apart(model, BATCH, None, None):
        pass
