"""Gradients that are cleared at the right time."""

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
from nethook.running.trying.fixes import gradients
from tests.running.trying.trials import both, with_fault


@pytest.mark.parametrize("code", gradients.CODES)
def test_each_finding_has_its_words(code: str) -> None:
    change = gradients.propose({"code": code}, SimpleNamespace())  # type: ignore[arg-type]
    assert change is not None
    assert "zero_grad()" in change.said


def trained(order: str, *, none: bool = True) -> torch.Tensor:
    """Weights after three steps, in an order of b(ackward), z(ero_grad) and s(tep)."""
    torch.manual_seed(0)
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(3):
        for letter in order:
            if letter == "b":
                net(torch.full((1, 3), 1.0 + step)).sum().backward()
            elif letter == "z":
                optimizer.zero_grad(set_to_none=none)
            elif letter == "m":
                net.zero_grad(set_to_none=none)
            else:
                optimizer.step()
    return net.weight.detach()


def changed(code: str, order: str, *, none: bool = True) -> tuple[torch.Tensor, int]:
    count: list[int] = []
    with Attachment(Owner("test")) as hooks:
        gradients.apply(Change(code=code), hooks, lambda: count.append(1))
        return trained(order, none=none), len(count)


def test_gradients_are_cleared_after_each_step() -> None:
    weights, count = changed("missing-zero-grad", "bs")
    assert torch.equal(weights, trained("zbs"))
    assert not torch.equal(weights, trained("bs"))
    assert count == 3


@pytest.mark.parametrize("none", [True, False])
@pytest.mark.parametrize("order", ["bzs", "bms", "bzzs"])
def test_a_step_finds_what_was_wiped(order: str, none: bool) -> None:
    weights, count = changed("gradient-wiped", order, none=none)
    assert torch.equal(weights, trained("zbs"))
    assert count == 3


@pytest.mark.parametrize("order", ["zbs", "bzbs", "bbs"])
def test_other_orders_stay_what_they_are(order: str) -> None:
    weights, count = changed("gradient-wiped", order)
    assert torch.equal(weights, trained(order))
    assert count == 0


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("missing-zero-grad", (("optimizer.zero_grad()", "pass"), ("lr=0.1", "lr=0.3"))),
        (
            "gradient-wiped",
            (
                ("        optimizer.zero_grad()\n", ""),
                ("loss.backward()", "loss.backward(); optimizer.zero_grad()"),
            ),
        ),
    ],
)
def test_the_other_order_is_tried(
    tmp_path: Path, code: str, fault: tuple[tuple[str, str], ...]
) -> None:
    before, after = both(tmp_path, with_fault(*fault), Change("gradients", code))
    assert after.end.changed >= 39
    assert compare(before.losses, after.losses, "train").helped
