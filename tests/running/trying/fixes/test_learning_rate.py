"""Another learning rate."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Owner
from nethook.running.trying.change import Change
from nethook.running.trying.comparing import compare
from nethook.running.trying.fixes import learning_rate
from tests.running.trying.trials import both, with_fault


def finding(code: str, ratio: float | None = None) -> dict[str, Any]:
    evidence = {} if ratio is None else {"update by weights": {"value": ratio}}
    return {"code": code, "evidence": evidence}


@pytest.mark.parametrize(
    ("code", "ratio", "first", "said"),
    [
        ("learning-rate-too-high", 3.0, None, "learning rate 0.1 → 0.0001"),
        ("learning-rate-too-high", None, None, "learning rate 0.1 → 0.01"),
        ("learning-rate-too-high", math.nan, None, "learning rate 0.1 → 0.01"),
        ("learning-rate-too-high", 1e9, None, "learning rate 0.1 → 1e-05"),
        ("learning-rate-too-high", 1e9, 0.3, "learning rate 0.1 → 0.001"),  # it has diverged
        ("learning-rate-too-low", 1e-5, 1e-5, "learning rate 0.1 → 10"),
        ("diverged", None, None, "learning rate 0.1 → 0.01"),
    ],
)
def test_the_rate_follows_from_the_evidence(
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    ratio: float | None,
    first: float | None,
    said: str,
) -> None:
    monkeypatch.setattr(learning_rate, "first_update_of", lambda run: first)
    monkeypatch.setattr(learning_rate, "rate_of", lambda run: 0.1)
    change = learning_rate.propose(finding(code, ratio), SimpleNamespace())  # type: ignore[arg-type]
    assert change is not None
    assert change.said == said


def test_there_is_no_change_where_the_rate_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning_rate, "rate_of", lambda run: None)
    monkeypatch.setattr(learning_rate, "first_update_of", lambda run: None)
    assert learning_rate.propose(finding("diverged"), SimpleNamespace()) is None  # type: ignore[arg-type]


def test_steps_are_those_of_the_other_rate_and_the_script_sees_its_own() -> None:
    def trained(rate: float) -> tuple[list[float], list[float]]:
        torch.manual_seed(0)
        net = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        rates = []
        for _ in range(4):
            optimizer.zero_grad()
            net(torch.ones(2, 3)).square().sum().backward()
            optimizer.step()
            rates.append(optimizer.param_groups[0]["lr"])
            schedule.step()
        return net.weight.flatten().tolist(), rates

    wanted, _ = trained(0.01)
    count: list[int] = []
    with Attachment(Owner("test")) as hooks:
        change = Change("learning_rate", numbers={"factor": 0.1})
        learning_rate.apply(change, hooks, lambda: count.append(1))
        weights, rates = trained(0.1)
    assert weights == pytest.approx(wanted, rel=1e-5)
    assert rates == [0.1, 0.05, 0.025, 0.0125]
    assert len(count) == 4


@pytest.mark.parametrize(
    ("rate", "factor", "helped"), [("5.0", 0.02, True), ("1e-6", 1e5, True), ("0.1", 1e-4, False)]
)
def test_a_rate_is_tried(tmp_path: Path, rate: str, factor: float, helped: bool) -> None:
    change = Change("learning_rate", "learning-rate-too-high", "", {"factor": factor})
    before, after = both(tmp_path, with_fault(("lr=0.1", f"lr={rate}")), change)
    assert (before.end.how, before.end.changed) == ("steps", 0)
    assert (after.end.how, after.end.changed) == ("steps", 40)
    compared = compare(before.losses, after.losses, "train")
    assert compared.helped is helped
    assert compared.steps == 40
