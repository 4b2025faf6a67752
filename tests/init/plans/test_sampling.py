"""Filling a weight."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nethook.init.dataflow.fans import layer_weights
from nethook.init.plans.sampling import DISTRIBUTIONS, draw


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_every_distribution_has_the_std_that_was_asked_for(distribution):
    torch.manual_seed(0)
    layout = layer_weights(nn.Conv2d(64, 64, 3))[0].layout
    made = draw((64, 64, 3, 3), distribution, 0.3, layout)
    rms = float(made.square().mean().sqrt())
    assert rms == pytest.approx(0.3, rel=0.02)
    assert not draw((64, 64, 3, 3), distribution, 0.0, layout).any()
