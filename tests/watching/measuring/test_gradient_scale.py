"""What gradients are multiplied by, from the loss to the step."""

from __future__ import annotations

import torch
from torch import nn

from nethook.watching.measuring.gradient_scale import GradientScale


def test_a_factor_is_that_of_the_next_backward_pass_alone():
    scale = GradientScale()
    scale.loss_scaled(8.0)
    assert scale.backward_begins() == 8.0
    assert (scale.unscale, scale.factor, scale.on) == (1 / 8, 1 / 8, True)
    assert scale.backward_begins() is None
    assert (scale.factor, scale.on) == (1.0, True)  # what was added before has the factor still
    scale.removed()
    assert not scale.on


def test_ranks_that_average_are_a_factor_too():
    scale = GradientScale(lambda model: 4)
    scale.forward_begins(nn.Identity())
    scale.loss_scaled(torch.tensor(2.0))
    scale.backward_begins()
    assert float(scale.factor) == 1 / 8
    assert GradientScale().ranks == 1


def test_a_factor_is_news_when_it_is_another():
    scale = GradientScale()
    assert [scale.noted(number) for number in (4.0, 4.0, 2.0)] == [None, None, 4.0]
