"""The rule `stale-optimizer`: when it reports, and when it does not."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from tests.doctor.ill import graph, loose, orphaned, stuck, well
from tests.doctor.small_runs import STEPS, Net, batch, codes, findings, train


def test_the_finding_has_the_line_of_the_optimizer() -> None:
    made = graph(stuck(), unheld=[loose(address="fc.weight", since=40)], optimizers=orphaned())
    (finding,) = made.found("stale-optimizer")
    assert finding.message.startswith("2 of the 6 tensors that SGD (train.py:9) steps on are not")
    assert finding.sites == ("fc.weight",)
    assert finding.lines == ("train.py:9",)
    assert finding.first_step == 40


def test_a_head_that_was_replaced(tmp_path: Path) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model.last = nn.Linear(6, 3)
    (first, *_) = findings(tmp_path, model, train, optimizer)
    assert first.code == "stale-optimizer"
    assert set(first.sites) == {"last.weight", "last.bias"}


def test_a_head_that_was_replaced_behind_frozen_layers(tmp_path: Path) -> None:
    """What the frozen layers lack is meant; that nothing is learnt is the head's."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model.requires_grad_(False)
    model.last = nn.Linear(6, 3)
    found = codes(tmp_path, model, train, optimizer)
    assert found[0] == "stale-optimizer"
    assert "no-gradient" not in found


def test_a_head_that_is_replaced_while_it_trains(tmp_path: Path) -> None:
    model = Net()
    steps = []

    def replace() -> None:
        steps.append(1)
        if len(steps) == STEPS // 3:
            model.last = nn.Linear(6, 3)

    (first, *_) = findings(tmp_path, model, train, after=replace)
    assert first.code == "stale-optimizer"
    assert first.first_step >= STEPS // 3 - 1


def test_an_optimizer_of_the_model_before(tmp_path: Path) -> None:
    old = Net()
    optimizer = torch.optim.SGD(old.parameters(), 0.1)
    assert codes(tmp_path, Net(), train, optimizer)[0] == "stale-optimizer"


def two_optimizers(model: Any, optimizer: Any, after: Any) -> None:
    """The new head has an optimizer of its own; the first one still holds the old head."""
    head = torch.optim.SGD(model.last.parameters(), 0.1)
    for _ in range(STEPS):
        x, y = batch()
        optimizer.zero_grad()
        head.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        head.step()


class Experts(nn.Module):
    """Only one of three is ever used."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(Net() for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.experts[0](x)


def test_hard_negatives(tmp_path: Path) -> None:
    # The new head has an optimizer of its own.
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model.last = nn.Linear(6, 3)
    assert "stale-optimizer" not in codes(tmp_path / "a", model, two_optimizers, optimizer)

    # The new head was added to the optimizer.
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model.last = nn.Linear(6, 3)
    optimizer.add_param_group({"params": model.last.parameters()})
    assert "stale-optimizer" not in codes(tmp_path / "b", model, train, optimizer)

    # Experts that are idle are in the optimizer and in no graph.
    assert "stale-optimizer" not in codes(tmp_path / "c", Experts(), train)

    # The new head is frozen on purpose.
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model.last = nn.Linear(6, 3).requires_grad_(False)
    assert "stale-optimizer" not in codes(tmp_path / "d", model, train, optimizer)

    # Other code moves the new head.
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model.last = nn.Linear(6, 3)

    def by_hand() -> None:
        for parameter in model.last.parameters():
            parameter.data -= 0.1 * parameter.grad

    assert "stale-optimizer" not in codes(tmp_path / "e", model, train, optimizer, after=by_hand)


def first_order_maml(model: Any, optimizer: Any, after: Any) -> None:
    """Gradients come from a copy, which takes steps of its own; the model is in no graph."""
    for _ in range(STEPS):
        model(batch()[0])
        inner = copy.deepcopy(model)
        for _ in range(2):
            x, y = batch()
            inner.zero_grad()
            nn.functional.cross_entropy(inner(x), y).backward()
            with torch.no_grad():
                for parameter in inner.parameters():
                    parameter -= 0.1 * parameter.grad
        for own, other in zip(model.parameters(), inner.parameters(), strict=True):
            own.grad = other.grad.clone()
        optimizer.step()


def test_gradients_of_a_copy(tmp_path: Path) -> None:
    found = codes(tmp_path, Net(), first_order_maml)
    assert not {"stale-optimizer", "optimizer-misses-parameters", "no-gradient"} & set(found)


def left_behind(tail: int, empty: float = 1.0) -> Any:
    """A model that is called in the first steps, and an optimizer that goes on."""
    steps = 200
    used = np.r_[np.ones(steps - tail), np.zeros(tail)]
    made = graph(well(steps))
    made.info["totals"] = {"optimizer_steps": {"0": steps}}
    for name in ("forwards", "backwards"):
        made.series("@loop", name, mean=used)
    made.series("@loop", "optimizer_steps", mean=1.0)
    return made.series("@loop", "empty_gradients", min=np.where(used > 0, 0.0, empty))


def test_the_optimizer_of_the_first_fold_goes_on() -> None:
    (finding,) = left_behind(120).found("stale-optimizer")
    assert finding.severity == "warning"
    assert finding.first_step == 80
    assert "went on for 120 steps without a gradient" in finding.message


def test_steps_that_are_none_of_that() -> None:
    assert not left_behind(10).found("stale-optimizer")  # a few at the end
    assert not left_behind(120, 0.0).found("stale-optimizer")  # gradients set by hand
    assert not left_behind(0).found("stale-optimizer")


def test_a_model_that_is_never_called() -> None:
    made = left_behind(200)  # from the first step to the last
    (finding,) = made.found("stale-optimizer")
    assert finding.severity == "error"
    assert "made 200 steps on a model that was never called" in finding.message
    assert not made.found("no-gradient")
    assert not left_behind(200, 0.0).found("stale-optimizer")  # weights that are used by name
    few = left_behind(200).series("@loop", "optimizer_steps", mean=np.r_[np.ones(9), np.zeros(191)])
    assert not few.found("stale-optimizer")
