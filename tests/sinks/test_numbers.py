"""Numbers of windows, against torch."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from nethook.sinks.numbers import MOST_LAYERS, Numbers
from nethook.stats.sheet import Sheet, layout_of
from nethook.stats.summary import summarise


def window(
    values: dict[tuple[str, str], list[torch.Tensor]], phase: str = "train"
) -> tuple[Numbers, Sheet]:
    """A window in which each series has seen these tensors, one per step."""
    numbers = Numbers()
    sheet = Sheet(layout_of([0] * len(values)), phase)
    for row, ((address, quantity), tensors) in enumerate(values.items()):
        numbers.add_series(row, address, quantity)
        made = summarise(torch.cat([tensor.flatten() for tensor in tensors]))
        sheet.rows[row] = made.row
        sheet.seen[row] = len(tensors)
    sheet.add_steps(0, max(len(tensors) for tensors in values.values()))
    return numbers, sheet


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def test_blocks_are_those_of_torch():
    torch.manual_seed(0)
    names = ["body.0.weight", "body.0.bias", "body.1.weight", "head.weight"]
    params = {name: random(5, 3) for name in names}
    grads = {name: random(5, 3) for name in names}
    updates = {name: random(5, 3) * 1e-3 for name in names}
    outputs = {"body.0": random(7), "body.1": random(9), "head": random(3)}
    numbers, sheet = window(
        {
            **{(name, "params"): [value] for name, value in params.items()},
            **{(name, "param_grads"): [value] for name, value in grads.items()},
            **{(name, "updates"): [value] for name, value in updates.items()},
            **{(name, "outputs"): [value] for name, value in outputs.items()},
        }
    )
    few = numbers.few(sheet)
    body = [name for name in names if name.startswith("body.0")]

    def norm(of):
        return math.sqrt(sum(float(of[name].square().sum()) for name in body))

    assert few["block/body.0/grad_norm"] == pytest.approx(norm(grads), rel=1e-9)
    assert few["block/body.0/update_ratio"] == pytest.approx(norm(updates) / norm(params), rel=1e-9)
    assert few["block/head/outputs_rms"] == pytest.approx(
        float(outputs["head"].square().mean().sqrt()), rel=1e-9
    )


def test_a_window_of_several_steps_has_the_norm_of_one():
    grad = random(4)
    numbers, sheet = window({("fc.weight", "param_grads"): [grad, grad, grad]})
    few = numbers.few(sheet)
    assert few["block/fc/grad_norm"] == pytest.approx(float(grad.norm()), rel=1e-9)


def test_what_is_not_finite_is_not_hidden():
    numbers, sheet = window({("fc.weight", "param_grads"): [torch.tensor([1.0, math.nan])]})
    assert math.isnan(numbers.few(sheet)["block/fc/grad_norm"])


def test_layers_that_stand_out_are_named_and_few():
    names = [f"l{i}.weight" for i in range(30)]
    numbers = None
    for turn in range(15):
        values = {}
        for index, name in enumerate(names):
            scale = 100.0 if index == turn else 1e-6 if index == turn + 1 else 1e-3
            values[name, "params"] = [torch.ones(3)]
            values[name, "updates"] = [torch.full((3,), scale)]
        made, sheet = window(values)
        numbers = numbers or made
        few = numbers.few(sheet)
        if turn == 0:
            assert few == {
                "layer/l0.weight/update_ratio": pytest.approx(100.0),
                "layer/l1.weight/update_ratio": pytest.approx(1e-6),
            }
    assert len(few) == MOST_LAYERS


def test_all_has_every_series_by_column():
    value = random(6)
    numbers, sheet = window(
        {("fc", "outputs"): [value], ("@loop", "grad_norm"): [torch.tensor([2.0])]}, "eval"
    )
    found = numbers.all(sheet)
    assert found["eval/outputs/fc.mean"] == pytest.approx(float(value.mean()))
    assert found["eval/outputs/fc.std"] == pytest.approx(float(value.std(correction=0)))
    assert found["eval/outputs/fc.max"] == float(value.max())
    assert found["eval/grad_norm/@loop"] == 2.0
    assert numbers.few(sheet) == {}  # blocks are of training
    assert np.isfinite(list(found.values())).all()
