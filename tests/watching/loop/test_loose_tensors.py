"""Tensors of no module are followed as a model, and stay what they are."""

from __future__ import annotations

import torch
from torch import nn

import nethook
from nethook.watching.loop.loose_tensors import LooseTensors, is_trained


def test_the_tensors_are_the_same_ones():
    w = torch.randn(3, 2, requires_grad=True)
    model = LooseTensors({"w": w})
    assert next(model.parameters()) is w
    assert type(w) is torch.Tensor
    assert vars(w) == {}
    assert is_trained(model, w)
    assert not is_trained(nn.Linear(2, 2), w)


def test_steps_losses_and_weights_that_move(tmp_path):
    torch.manual_seed(0)
    w = torch.zeros(3, 2, requires_grad=True)
    losses = []
    with nethook.watch(LooseTensors({"w": w}), to=tmp_path / "run.db") as watch:
        watch.be_silent()
        for _ in range(20):
            x = torch.randn(8, 3)
            loss = nn.functional.cross_entropy(x @ w, x[:, :2].argmax(1))
            losses.append(loss.item())
            loss.backward()
            w.data -= 0.5 * w.grad
            w.grad = None
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.info["totals"]["backwards"] == 20
        assert run.info["totals"]["steps"] == 20
        assert run.info["seen"] == {"losses": 1, "backwards": 20, "gradients": 1}
        (name,) = run.info["losses"]
        shown = run.scalars[f"loss:{name}"].value
        assert list(shown) == losses
    assert not [each for each in nethook.diagnose(tmp_path / "run.db") if each.at_least("warning")]
