"""A rehearsal of a step that is not under way."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nethook.addresses.inputs import Inputs
from nethook.examining.experiment import NotReplayableError
from nethook.examining.rehearse import rehearse


def test_the_model_stays_as_it_is():
    model = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    x, y = torch.randn(6, 5), torch.randn(6, 4)
    rehearsal = rehearse(model, Inputs((x,)), lambda output: F.mse_loss(output, y))
    assert rehearsal.replayable
    assert rehearsal.model is not model
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


def test_an_error_of_the_loss_leaves_nothing_behind():
    from nethook.torch_private import function_modes

    with pytest.raises(RuntimeError):
        rehearse(nn.Linear(5, 4), Inputs((torch.randn(2, 5),)), lambda output: output.view(99))
    assert function_modes() == 0


def test_a_forward_that_prints_is_not_run():
    class Loud(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(5, 4)
            self.calls = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            print(end="")
            return self.inner(x)

    with pytest.raises(NotReplayableError, match="prints"):
        rehearse(Loud(), Inputs((torch.randn(2, 5),)), lambda output: output.mean())
