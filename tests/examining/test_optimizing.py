"""The script's optimizers on a copy: the same steps, and nobody's hooks."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from nethook.examining.optimizing import made_again, settings_of, step_alone


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))


def give_gradients(model: nn.Module, seed: int) -> None:
    source = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=source)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
        (torch.optim.Adam, {"lr": 0.01, "amsgrad": True}),
        (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.3}),
        (torch.optim.Adagrad, {"lr": 0.1, "initial_accumulator_value": 0.5}),
        (torch.optim.RMSprop, {"lr": 0.01, "centered": True}),
        (torch.optim.Rprop, {"lr": 0.01}),
    ],
)
def test_the_same_steps_on_a_copy(kind: Any, options: dict[str, Any]) -> None:
    model = net()
    first, second = model[0], model[2]  # type: ignore[index]
    theirs = kind(
        [{"params": first.parameters()}, {"params": second.parameters(), "lr": 0.02}], **options
    )
    other = copy.deepcopy(model)
    (settings,) = settings_of([theirs], model)
    mine = made_again(settings, other)
    for step in range(3):
        for network, optimizer in ((model, theirs), (other, mine)):
            give_gradients(network, step)
            step_alone(optimizer)
    assert not torch.equal(net().state_dict()["0.weight"], model.state_dict()["0.weight"])
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name])


def test_settings_are_those_of_the_moment_and_of_one_model() -> None:
    model, stranger = net(), nn.Linear(2, 2)
    rate = torch.tensor(0.5)
    optimizer = torch.optim.SGD([{"params": model.parameters()}, {"params": stranger.weight}], rate)
    (settings,) = settings_of([optimizer, torch.optim.Adam(stranger.parameters())], model)
    rate.fill_(0.1)
    assert settings.kind is torch.optim.SGD
    assert settings.rate == 0.5
    assert [group["params"] for group in settings.groups] == [
        ["0.weight", "0.bias", "2.weight", "2.bias"]
    ]


def test_no_hook_is_called() -> None:
    called: list[object] = []
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.register_step_post_hook(lambda *given: called.append(given))
    handle = register_optimizer_step_pre_hook(lambda *given: called.append(given))
    try:
        (settings,) = settings_of([optimizer], model)
        mine = made_again(settings, model)
        give_gradients(model, 0)
        before = model.state_dict()["0.weight"].clone()
        step_alone(mine)
        assert not torch.equal(before, model.state_dict()["0.weight"])
        assert called == []
        mine.step()
        assert len(called) == 1
    finally:
        handle.remove()


def test_optimizers_that_are_not_stepped() -> None:
    class Own(torch.optim.SGD):
        pass

    model = net()
    reasons = {
        torch.optim.LBFGS(model.parameters()): "calls the model by itself",
        Own(model.parameters(), lr=0.1): "(Own) is not one of torch's",
        torch.optim.SGD(model.parameters(), lr=0.0): "its learning rate is zero",
    }
    for optimizer, words in reasons.items():
        assert words in settings_of([optimizer], model)[0].why_not
