"""The rule `optimizer-recreated`: when it reports, and when it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import nethook
from tests.doctor.ill import well
from tests.doctor.small_runs import Net, batch
from tests.doctor.synthetic import Made


def made_of(count: int, every: int, kind: str = "Adam", **group: Any) -> Made:
    """A parameter that has been in so many optimizers of one line."""
    run = well().parameter("a.weight", groups=[[str(at), 0] for at in range(count)])
    for at in range(count):
        groups = [group or {"betas": [0.9, 0.99]}]
        data: dict[str, Any] = {"optimizer": str(at), "type": kind, "line": "train.py:7"}
        run.event("groups", at * every, **data, groups=groups)
    return run


def test_one_for_every_step() -> None:
    (finding,) = made_of(200, 1).found("optimizer-recreated")
    assert finding.severity == "warning"
    assert (
        "was run at least 200 times for the same parameters, about once in 1 steps"
        in finding.message
    )
    assert finding.lines == ("train.py:7",)


def test_settings_that_change_are_no_new_optimizers() -> None:
    made = made_of(5, 40)  # five folds, each with a momentum that a schedule changes
    for step in range(200):
        groups = [{"betas": [0.9 + step * 1e-4, 0.99]}]
        data = {"optimizer": str(step // 40), "type": "Adam", "line": "train.py:7"}
        made.event("groups", step, **data, groups=groups)
    (finding,) = made.found("optimizer-recreated")
    assert finding.severity == "info"
    assert "was run at least 5 times" in finding.message


def test_one_for_every_epoch_is_a_question() -> None:
    (finding,) = made_of(8, 25).found("optimizer-recreated")
    assert finding.severity == "info"
    assert "Is that meant" in finding.message
    momentum = made_of(8, 25, "SGD", momentum=0.9).found("optimizer-recreated")
    assert [one.severity for one in momentum] == ["info"]


@pytest.mark.parametrize(
    "made",
    [
        made_of(3, 60),  # phases of a training
        made_of(200, 1, "SGD", momentum=0),  # inner steps of a meta-learner keep nothing
        made_of(200, 1, "LBFGS", history_size=10),
        well().parameter("a.weight"),
        made_of(8, 25).without("parameter.groups"),
    ],
)
def test_it_is_silent(made: Made) -> None:
    assert not made.found("optimizer-recreated")


def train(inside: bool, path: Path) -> set[str]:
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with nethook.watch(model, to=path, budget=None) as watch:
        watch.be_silent()
        for _ in range(30):
            if inside:
                optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
            x, y = batch()
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    return {finding.code for finding in nethook.diagnose(path)}


def test_in_a_training(tmp_path: Path) -> None:
    assert "optimizer-recreated" in train(True, tmp_path / "inside.db")
    assert "optimizer-recreated" not in train(False, tmp_path / "before.db")
