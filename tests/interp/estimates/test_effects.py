"""Effects from values and gradients, by hand."""

from __future__ import annotations

import torch

from nethook.interp.estimates.cells import Cells
from nethook.interp.estimates.effects import effects
from nethook.interp.estimates.gradients import GradientRun
from nethook.interp.estimates.points import Point

POINT, INNER = Point("a"), Point("layer.fc")
VALUES = {POINT: torch.tensor([[1.0, 2.0]]), INNER: torch.tensor([[0.0, 0.0]])}
SOURCE = {POINT: torch.tensor([[3.0, 0.0]]), INNER: torch.tensor([[1.0, 1.0]])}


def _grads(a: list[float], inner: list[float]) -> dict[Point, torch.Tensor]:
    return {POINT: torch.tensor([a]), INNER: torch.tensor([inner])}


def test_differences_times_gradients() -> None:
    run = GradientRun(torch.zeros(1), VALUES, [(None, _grads([0.5, 4.0], [1.0, -1.0]))])
    found = effects(Cells(("units",), (2,)), [POINT, INNER], run, SOURCE)
    assert found[..., 0].tolist() == [[1.0, -8.0], [1.0, -1.0]]
    whole = effects(Cells((), ()), [POINT, INNER], run, SOURCE)
    assert whole[..., 0].tolist() == [[-7.0], [0.0]]


def test_dropped_layers_are_averaged_in_size_except_the_points_own() -> None:
    run = GradientRun(
        torch.zeros(1),
        VALUES,
        [("layer", _grads([1.0, 0.0], [0.0, 0.0])), ("other", _grads([-2.0, 0.0], [3.0, 0.0]))],
    )
    found = effects(Cells((), ()), [POINT, INNER], run, SOURCE)
    assert found[..., 0].tolist() == [[(2.0 + 4.0) / 2], [3.0]]


def test_half_precision_is_multiplied_in_double() -> None:
    values = {POINT: torch.tensor([[1000.0]], dtype=torch.bfloat16)}
    source = {POINT: torch.tensor([[1008.0]], dtype=torch.bfloat16)}
    grads = {POINT: torch.tensor([[1.0]], dtype=torch.bfloat16)}
    run = GradientRun(torch.zeros(1), values, [(None, grads)])
    assert effects(Cells((), ()), [POINT], run, source).item() == 8.0
