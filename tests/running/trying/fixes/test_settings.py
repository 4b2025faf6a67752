"""Settings of optimizers, for a step."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import nethook
from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Owner
from nethook.running.trying.fixes.settings import (
    evidence,
    first_update_of,
    rate_of,
    scaled_in_steps,
    setting_of,
)
from nethook.runs.names import GROUPS


def test_evidence_is_a_positive_number_or_nothing() -> None:
    found = {"evidence": {"a": {"value": 2.0}, "b": -1.0, "c": "x", "d": float("inf")}}
    assert evidence(found, "a") == 2.0
    assert [evidence(found, name) for name in "bcde"] == [None] * 4


def test_the_largest_value_of_a_setting_counts() -> None:
    events = [
        SimpleNamespace(kind=GROUPS, data={"groups": [{"eps": 1.0}, {"eps": 3.0}, "odd"]}),
        SimpleNamespace(kind="other", data={"groups": [{"eps": 9.0}]}),
    ]
    run = SimpleNamespace(events=events)
    assert setting_of(run, "eps") == 3.0  # type: ignore[arg-type]
    assert setting_of(run, "lr") is None  # type: ignore[arg-type]


def test_a_setting_is_put_back_also_after_a_step_that_failed() -> None:
    net = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)

    def fail() -> float:
        assert optimizer.param_groups[0]["lr"] == 1.0
        raise ValueError("in the closure")

    with Attachment(Owner("test")) as hooks:
        scaled_in_steps(hooks, lambda: None, "lr", lambda rate: 2 * rate)
        with pytest.raises(ValueError, match="in the closure"):
            optimizer.step(fail)
        optimizer.step()
        assert optimizer.param_groups[0]["lr"] == 0.5


def test_rate_and_first_update_are_read_from_a_run(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.25)
    ratios = []
    with nethook.watch(net, optimizer, to=tmp_path / "run.db", budget=None):
        for step in range(6):
            before = [parameter.detach().clone() for parameter in net.parameters()]
            optimizer.zero_grad()
            (net(torch.ones(8, 4)) - 10 * 3**step).square().mean().backward()
            optimizer.step()
            moved = [new.detach() - old for new, old in zip(net.parameters(), before, strict=True)]
            norms = [torch.cat([p.flatten() for p in some]).norm() for some in (moved, before)]
            ratios.append(float(norms[0] / norms[1]))
    with nethook.open_run(tmp_path / "run.db") as run:
        assert rate_of(run) == 0.25
        assert first_update_of(run) == pytest.approx(min(ratios[:3]), rel=0.2)
