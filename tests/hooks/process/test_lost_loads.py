"""Weights that were loaded and then replaced, told from those that were kept or changed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import nn

from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Owner
from nethook.hooks.process.lost_loads import loads_lost
from nethook.hooks.process.origins import note_origins


@pytest.fixture(autouse=True)
def noted() -> Iterator[None]:
    with Attachment(Owner("test")) as hooks:
        note_origins(hooks)
        yield


def loaded() -> nn.Sequential:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 8))
    model.load_state_dict(nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 8)).state_dict())
    return model


def draw(weights: list[torch.Tensor]) -> None:
    for weight in weights:
        nn.init.xavier_uniform_(weight)


def test_all_weights_are_drawn_anew() -> None:
    model = loaded()
    assert loads_lost([model]) == []
    draw([model[0].weight, model[1].weight])
    (lost,) = loads_lost([nn.ModuleDict({"net": model})])
    assert lost["weights"] == 2
    assert lost["names"] == ["net.0.weight", "net.1.weight"]
    assert lost["line"].startswith("test_lost_loads.py:")


def test_a_head_that_is_drawn_anew() -> None:
    model = loaded()
    draw([model[1].weight])
    assert loads_lost([model]) == []


def test_weights_that_were_changed_and_not_replaced() -> None:
    model = loaded()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(0.5).add_(0.001)
    assert loads_lost([model]) == []


def test_weights_that_were_trained_since() -> None:
    model = loaded()
    optimizer = torch.optim.SGD(model.parameters(), 3.0)
    for _ in range(10):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).square().sum().backward()
        optimizer.step()
    assert loads_lost([model]) == []


def test_a_later_load_fills_them_again() -> None:
    model = loaded()
    draw([model[0].weight, model[1].weight])
    model.load_state_dict(nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 8)).state_dict())
    assert loads_lost([model]) == []
