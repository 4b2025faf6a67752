"""Hinges that a script has written itself, with their targets."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nethook.examining.probes.hinges import Hinge, hinges_of
from tests.examining.experiments.steps import step

SIGNS = torch.tensor([1.0, -1.0] * 6)
ZEROS = (SIGNS + 1) / 2


def of(then) -> list[Hinge]:
    passage = step(nn.Linear(8, 2), torch.randn(12, 8), then=then).rehearsal().passage
    assert passage is not None
    return hinges_of(passage)


def test_the_target_and_the_line_of_a_hinge() -> None:
    (hinge,) = of(lambda out: torch.clamp(1 - SIGNS[:, None] * out, min=0).mean())
    assert torch.equal(hinge.target, SIGNS)
    assert hinge.line.startswith("test_hinges.py:")


def test_each_of_two_hinges_has_a_target_of_its_own() -> None:
    first, second = of(
        lambda out: (
            F.relu(1 - SIGNS * out[:, 0]).mean() + (2 - out[:, 1] * ZEROS).clamp_min(0).mean()
        )
    )
    assert torch.equal(first.target, SIGNS)
    assert torch.equal(second.target, ZEROS)


NONE = {
    "a target that is read again": lambda out: F.relu(1 - ZEROS * out[:, 0]).sum() / ZEROS.sum(),
    "no target": lambda out: F.relu(1 - out).mean(),
    "a number that is not above zero": lambda out: F.relu(0 - ZEROS * out[:, 0]).mean(),
    "another limit": lambda out: (1 - ZEROS * out[:, 0]).clamp(min=0.5).mean(),
    "a limit above, too": lambda out: (1 - ZEROS * out[:, 0]).clamp(0, 3).mean(),
    "a factor that is learnt": lambda out: F.relu(1 - out[:, 0] * out[:, 1]).mean(),
}


@pytest.mark.parametrize("name", NONE)
def test_what_is_no_hinge_on_a_target(name: str) -> None:
    assert of(NONE[name]) == []
