"""A network like the trained one that nobody has trained is met; copies and others are not."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
import torch
from torch import nn

from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Owner
from nethook.hooks.process.origins import note_origins
from nethook.running.detecting.twins import Twins


class Net(nn.Sequential):
    def __init__(self, width: int = 16) -> None:
        super().__init__(nn.Linear(8, width), nn.Linear(width, 8))


@pytest.fixture(autouse=True)
def noted() -> Iterator[None]:
    torch.manual_seed(0)
    with Attachment(Owner("test")) as hooks:
        note_origins(hooks)
        yield


def train(model: nn.Module, steps: int = 12) -> None:
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).square().mean().backward()
        optimizer.step()


def met(other: nn.Module, trained: nn.Module) -> list[dict[str, object]]:
    twins = Twins()
    twins.follow([trained])
    twins.meet([other])
    return twins.evaluated()


def test_a_fresh_network_of_the_same_kind() -> None:
    trained, other = Net(), Net()
    train(trained)
    assert met(other, trained) == [{"kind": "Net", "weights": 2}]


def test_copies_and_averages_of_the_trained_one() -> None:
    trained = Net()
    train(trained)
    assert met(trained, trained) == []
    assert met(copy.deepcopy(trained), trained) == []
    loaded, by_hand, average = Net(), Net(), Net()
    loaded.load_state_dict(trained.state_dict())
    assert met(loaded, trained) == []
    for mine, theirs in zip(by_hand.parameters(), trained.parameters(), strict=True):
        mine.data.copy_(theirs.data)
    assert met(by_hand, trained) == []
    for mine, theirs in zip(average.parameters(), trained.parameters(), strict=True):
        mine.data.mul_(0.5).add_(theirs.data, alpha=0.5)
    assert met(average, trained) == []


def test_other_networks() -> None:
    trained, other = Net(), Net()
    train(trained)
    train(other)
    assert met(other, trained) == []  # it is trained itself
    assert met(Net(width=32), trained) == []
    assert met(nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 8)), trained) == []


def test_a_network_that_is_called_while_the_other_one_learns() -> None:
    trained, target = Net(), Net()
    twins = Twins()
    twins.follow([trained])
    twins.meet([target])
    train(trained)
    assert twins.evaluated() == []


class Drops(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Linear(8, 16), nn.Dropout(0.5), nn.Linear(16, 8))


def loaded(trained: nn.Module, kind: type[nn.Module] = Drops) -> nn.Module:
    other = kind()
    other.load_state_dict(trained.state_dict())
    return other


def test_a_loaded_network_in_training_mode() -> None:
    trained, twins = Drops(), Twins()
    train(trained)
    twins.follow([trained])
    other = loaded(trained)
    twins.meet_loaded([other], set())
    assert twins.in_training_mode() == [{"layers": ["1"]}]
    other.eval()
    assert twins.in_training_mode() == []


def test_a_loaded_network_outlives_the_trained_one() -> None:
    trained, twins = Drops(), Twins()
    train(trained)
    twins.follow([trained])
    other = loaded(trained)
    del trained
    twins.meet_loaded([other], set())
    del other
    assert twins.in_training_mode() == [{"layers": ["1"]}]


def asked(other: nn.Module, trained: nn.Module, *, further: int = 0) -> list[dict[str, object]]:
    twins = Twins()
    twins.follow([trained])
    twins.meet_loaded([other], set())
    train(trained, further)
    return twins.in_training_mode()


def test_loaded_networks_that_are_as_they_should_be() -> None:
    trained = Drops()
    train(trained)
    assert asked(loaded(trained).eval(), trained) == []
    assert asked(Drops(), trained) == []  # nothing was loaded
    assert asked(trained, trained) == []
    assert asked(loaded(trained), trained, further=2) == []  # a teacher
    plain = Net()
    train(plain)
    assert asked(loaded(plain, Net), plain) == []  # no layer has modes
    twins, tuned = Twins(), loaded(trained)
    twins.follow([trained])
    twins.meet_loaded([tuned], {id(one) for one in tuned.parameters()})
    assert twins.in_training_mode() == []
