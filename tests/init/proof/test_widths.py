"""Width sweeps: what depends on width is seen to."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nethook.errors import OptionError
from nethook.init import apply_, plan, sweep

X = torch.randn(64, 16, generator=torch.Generator().manual_seed(0))


def net(width):
    return nn.Sequential(
        nn.Linear(16, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4)
    )


def started(width):
    model = net(width)
    return apply_(model, plan(model, X))


def wrong(width):
    """A standard deviation that does not know the width: scales grow with its root."""
    model = net(width)
    for layer in model:
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, 0.0, 0.1)
            nn.init.zeros_(layer.bias)
    return model


def test_scales_of_a_plan_do_not_depend_on_width():
    found = sweep(started, [32, 128, 512], X, seeds=3)
    assert len(found) == 3
    assert found.ok(0.15)


def test_scales_that_do_are_seen():
    found = sweep(wrong, [32, 128, 512], X, seeds=2)
    first, second, third = [row.exponent for row in found]
    assert first == pytest.approx(0.0, abs=0.05)
    assert second == pytest.approx(0.5, abs=0.1)
    assert third == pytest.approx(1.0, abs=0.15)
    assert not found.ok()


def test_after_some_steps_of_training():
    def step(model):
        optimizer = torch.optim.SGD(model.parameters(), 1e-2)
        model(X).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    before = torch.get_rng_state()
    found = sweep(started, [16, 32], X, train=step, steps=2)
    assert found.steps == 2
    assert "after 2 steps" in repr(found)
    assert torch.equal(torch.get_rng_state(), before)
    still = sweep(started, [16, 32], X)
    assert [row.forward for row in found] != [row.forward for row in still]


def test_looks():
    found = sweep(started, [16, 32], X)
    assert repr(found).startswith("scales at 2 widths: 3 layers")
    assert "<table>" in found._repr_html_()
    assert found.to_dict()["widths"] == [16, 32]
    assert len(found.figure().data) == 3


def test_refusals():
    with pytest.raises(OptionError, match="at least two"):
        sweep(started, [16, 16], X)
    with pytest.raises(OptionError, match="`train` must be a function where there are steps"):
        sweep(started, [16, 32], X, steps=3)
    with pytest.raises(
        OptionError, match="same layers at every width; got 3 at width 16 and 1 at width 32"
    ):
        sweep(lambda width: net(16) if width == 16 else nn.Linear(16, 4), [16, 32], X)
