"""Gradients that are clipped, or clipped less."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Owner
from nethook.running.trying.change import Change
from nethook.running.trying.comparing import compare
from nethook.running.trying.fixes import clipping
from tests.running.trying.trials import both, with_fault

RUN = SimpleNamespace()


def test_the_change_follows_from_the_finding() -> None:
    for found, said in (
        ({"code": "exploding-gradient"}, "gradients clipped to a norm of 1"),
        (
            {"code": "clipping-too-tight", "evidence": {"norm before by norm after": 83.0}},
            "limit of clipping times 80",
        ),
        ({"code": "clipping-too-tight"}, "limit of clipping times 10"),
    ):
        change = clipping.propose(found, RUN)  # type: ignore[arg-type]
        assert change is not None
        assert change.said == said


@pytest.mark.parametrize("how", ["step()", "step(closure)", "step(closure=…)"])
def test_steps_are_clipped(how: str) -> None:
    net = nn.Linear(4, 1, bias=False)
    nn.init.zeros_(net.weight)
    optimizer = torch.optim.SGD(net.parameters(), lr=1.0)

    def closure() -> torch.Tensor:
        loss = (100 * net(torch.ones(1, 4))).sum()
        loss.backward()
        return loss

    with Attachment(Owner("test")) as hooks:
        clipping.apply(Change(numbers={"limit": 1.0}), hooks, lambda: None)
        if how == "step()":
            closure()
            optimizer.step()
        elif how == "step(closure)":
            optimizer.step(closure)
        else:
            optimizer.step(closure=closure)
    assert net.weight.norm().item() == pytest.approx(1.0, rel=1e-3)


def test_limits_are_raised_however_they_are_given() -> None:
    parameter = nn.Parameter(torch.zeros(2))

    def clipped(**how: float) -> float:
        parameter.grad = torch.tensor([30.0, 40.0])
        if "value" in how:
            torch.nn.utils.clip_grad_value_([parameter], clip_value=how["value"])
        elif "by_name" in how:
            torch.nn.utils.clip_grad_norm_(parameters=[parameter], max_norm=how["by_name"])
        else:
            torch.nn.utils.clip_grad_norm_([parameter], how["norm"], error_if_nonfinite=True)
        return float(parameter.grad.norm())

    count: list[int] = []
    with Attachment(Owner("test")) as hooks:
        clipping.apply(Change(numbers={"factor": 10.0}), hooks, lambda: count.append(1))
        assert clipped(norm=1.0) == pytest.approx(10.0, rel=1e-3)
        assert clipped(by_name=2.0) == pytest.approx(20.0, rel=1e-3)
        assert clipped(value=2.0) == pytest.approx(20 * 2**0.5, rel=1e-3)
    assert len(count) == 3
    assert clipped(norm=1.0) == pytest.approx(1.0, rel=1e-3)


def test_a_limit_is_tried(tmp_path: Path) -> None:
    tight = "nn.utils.clip_grad_norm_(model.parameters(), 1e-4); optimizer.step()"
    change = Change("clipping", "clipping-too-tight", "", {"factor": 1e4})
    before, after = both(tmp_path, with_fault(("optimizer.step()", tight)), change)
    assert after.end.changed >= 40  # the last one before the end as well
    assert compare(before.losses, after.losses, "train").helped
