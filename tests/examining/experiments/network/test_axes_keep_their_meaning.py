"""Axes keep their meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nethook.examining.experiments.network.axes_keep_their_meaning import (
    AxesKeepTheirMeaning,
    mixes,
)
from tests.examining.experiments.steps import Calls, step


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ((64, 8, 8, 3), (64, 3, 8, 8)),  # pictures with their channels last
        ((50, 6, 10), (6, 50, 10)),  # time and batch
        ((32, 100, 4), (32, 4, 10, 10)),  # a map of classes
        ((16, 7, 30), (480, 7)),  # (batch, classes, length), as rows of classes
        ((10, 7, 12), (30, 7, 4)),  # heads and steps of an attention
    ],
)
def test_axes_that_are_mixed(given: tuple[int, ...], made: tuple[int, ...]) -> None:
    assert mixes(given, made) == "mixed"


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ((64, 3, 8, 8), (64, 192)),
        ((64, 192), (64, 3, 8, 8)),
        ((6, 50, 10), (300, 10)),
        ((6, 50, 12), (6, 50, 4, 3)),
        ((24, 5, 7, 7), (24, 5, 49)),
        ((8, 12, 12, 6), (8, 3, 4, 3, 4, 6)),  # windows, which are permuted afterwards
        ((4, 9, 8), (4, 8, 9)),  # positions that are shifted against each other
        ((4, 30, 5), (4, 15, 10)),  # two frames as one
        ((32, 1, 10), (32, 10, 1)),
        ((7, 7, 3), (7, 7, 3)),
        ((12,), (3, 4)),
    ],
)
def test_axes_that_are_split_and_joined(given: tuple[int, ...], made: tuple[int, ...]) -> None:
    assert mixes(given, made) == ""


def test_axes_that_may_be_split_and_joined() -> None:
    assert mixes((4, 8, 16), (4, 16, 8)) == "perhaps"  # two frames as one, in half as many steps
    assert mixes((16, 5, 30), (480, 5)) == "perhaps"


def of(forward: Callable[..., torch.Tensor], *, then: Any = None) -> Any:
    x, y = torch.randn(12, 6, 5, 3), torch.randint(4, (12,))
    model = Calls(forward, conv=nn.Conv2d(3, 8, 3, padding=1), out=nn.Linear(8, 4))
    made = step(model, x, then=then or (lambda out: F.cross_entropy(out, y)))
    return AxesKeepTheirMeaning().run(made.rehearsal())


def test_in_the_model() -> None:
    wrong = of(lambda self, x: self.out(self.conv(x.view(12, 3, 6, 5)).mean((2, 3))))
    assert wrong.outcome == "found"
    assert wrong.facts["given"] == [12, 6, 5, 3]
    assert wrong.facts["made"] == [12, 3, 6, 5]
    assert wrong.facts["lines"][0].startswith("test_axes_keep_their_meaning.py:")
    right = of(lambda self, x: self.out(self.conv(x.permute(0, 3, 1, 2)).flatten(2).mean(2)))
    assert right.outcome == "not applicable"
    rows = of(lambda self, x: self.out(self.conv(x.permute(0, 3, 1, 2)).view(12, 8, 30).mean(2)))
    assert rows.outcome == "fine"


def test_between_output_and_loss() -> None:
    y = torch.randint(4, (12, 6, 5))

    def rows(self: Any, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.out(self.conv(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1))
        return out

    wrong = of(rows, then=lambda out: F.cross_entropy(out.reshape(12, 4, 6, 5), y))
    assert wrong.outcome == "found"
    assert wrong.facts["lines"][0].startswith("test_axes_keep_their_meaning.py:")
    right = of(rows, then=lambda out: F.cross_entropy(out.reshape(-1, 4), y.reshape(-1)))
    assert right.outcome == "fine"
