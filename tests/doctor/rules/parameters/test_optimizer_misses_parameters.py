"""The rule `optimizer-misses-parameters`: when it reports, and when it does not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tests.doctor.ill import cut, graph, loose
from tests.doctor.small_runs import STEPS, Net, batch, codes, findings, train


def test_three_steps_with_a_gradient() -> None:
    (finding,) = cut(groups=[], moved=[0, 3], with_grad=3).found("optimizer-misses-parameters")
    assert finding.sites == ("a.weight",)
    assert "That is 256 of 512 weights." in finding.message
    missed = cut(groups=[], moved=[0, 3], with_grad=2)
    assert not missed.found("optimizer-misses-parameters")


def test_layers_that_came_after_the_optimizer() -> None:
    late: dict[str, Any] = {"address": "adapter.weight", "elements": 64, "looks": 9, "since": 100,
                            "last": 190, "moved": False, "filled": False}  # fmt: skip
    frozen: dict[str, Any] = {"with_grad": 0, "moved": [0, 5], "requires_grad": False}
    made = graph(cut(**frozen), unheld=[late])
    (finding,) = made.found("optimizer-misses-parameters")
    assert finding.sites == ("adapter.weight",)
    assert finding.first_step == 100
    assert "came to the model at step 100" in finding.message
    assert not made.found("no-gradient")  # what is frozen is so on purpose
    for fact in ({"moved": True}, {"filled": True}, {"looks": 2}):
        meant = graph(cut(), unheld=[late | fact])
        assert not meant.found("optimizer-misses-parameters")


def test_what_was_never_measured() -> None:
    assert not cut(groups=[], moved=[0, 0]).found("optimizer-misses-parameters")


def test_without_any_step_another_rule_reports() -> None:
    made = cut(groups=[], moved=[0, 3]).loop("optimizer_steps", 0)
    assert not made.found("optimizer-misses-parameters")


def test_weights_that_were_loaded_are_information() -> None:
    (finding,) = cut(groups=[], moved=[0, 3], with_grad=3, filled=True).found(
        "optimizer-misses-parameters"
    )
    assert finding.severity == "info"


def test_a_network_beside_the_one_that_is_trained() -> None:
    made = graph(cut(), others=[loose(how="module", where="decoder", kind="Decoder")])
    (finding,) = made.found("optimizer-misses-parameters")
    assert finding.severity == "warning"
    assert finding.message.startswith("`decoder` is in the graph of the loss, and no optimizer has")
    assert finding.lines == ("train.py:5", "net.py:7")
    known = graph(cut(), others=[loose(how="module", where="vgg", filled=True)])
    assert [each.severity for each in known.found("optimizer-misses-parameters")] == ["info"]


def test_a_copy_of_the_model_is_left_alone() -> None:
    made = graph(cut(), others=[loose(how="module", where="inner", kind="Net")])
    made.info["models"] = {"": {"type": "Net"}}
    assert not made.found("optimizer-misses-parameters")


class Decoder(Net):
    """Another network than the one that is watched."""


def through(second: nn.Module) -> Callable[..., None]:
    """A loop whose loss goes through a second network."""

    def loop(model: Any, optimizer: Any, after: Any) -> None:
        for _ in range(STEPS):
            x, y = batch()
            optimizer.zero_grad()
            padded = nn.functional.pad(model(x), (0, 1))
            nn.functional.cross_entropy(second(padded), y).backward()
            optimizer.step()
            after()

    return loop


def head_only(model: Any) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.last.parameters(), 0.01)


def test_a_second_network_that_nobody_trains(tmp_path: Path) -> None:
    second = Decoder()
    (first, *_) = findings(tmp_path, Net(), through(second))
    assert first.code == "optimizer-misses-parameters"
    assert "`Decoder`" in first.message


def test_hard_negatives(tmp_path: Path) -> None:
    # Another optimizer has it: a GAN's other network.
    second = Decoder()
    other = torch.optim.Adam(second.parameters(), 0.01)
    found = codes(tmp_path / "a", Net(), through(second), after=other.step)
    assert "optimizer-misses-parameters" not in found

    # It was loaded: a perceptual loss.
    second = Decoder()
    state = {name: torch.randn_like(value) for name, value in second.state_dict().items()}
    found = codes(
        tmp_path / "b", Net(), through(second), before=lambda: second.load_state_dict(state)
    )
    assert "optimizer-misses-parameters" not in found

    # It was trained before: a critic that is kept.
    second = Decoder()

    def pretrain() -> None:
        optimizer = torch.optim.SGD(second.parameters(), 0.1)
        train(second, optimizer, lambda: None)

    found = codes(tmp_path / "c", Net(), through(second), before=pretrain)
    assert "optimizer-misses-parameters" not in found

    # It is frozen, or in eval mode.
    second = Decoder().requires_grad_(False)
    assert "optimizer-misses-parameters" not in codes(tmp_path / "d", Net(), through(second))
    second = Decoder().eval()
    assert "optimizer-misses-parameters" not in codes(tmp_path / "e", Net(), through(second))

    # An average of the model's weights.
    model, second = Net(), Decoder()

    def average() -> None:
        with torch.no_grad():
            for mine, other in zip(second.parameters(), model.parameters(), strict=True):
                mine.lerp_(other, 0.1)

    found = codes(tmp_path / "f", model, through(second), after=average)
    assert "optimizer-misses-parameters" not in found

    # A copy of the model, which is thrown away: MAML, a look ahead.
    found = codes(tmp_path / "g", Net(), through(copy.deepcopy(Net())))
    assert "optimizer-misses-parameters" not in found


def test_a_backbone_that_was_loaded_under_a_new_head(tmp_path: Path) -> None:
    model, pretrained = Net(), Net()

    def load() -> None:
        model.first.load_state_dict(pretrained.first.state_dict())

    found = findings(tmp_path / "a", model, train, head_only(model), before=load)
    assert [each.severity for each in found if each.code == "optimizer-misses-parameters"] == [
        "info"
    ]
    fresh = Net()
    assert codes(tmp_path / "b", fresh, train, head_only(fresh))[0] == "optimizer-misses-parameters"
