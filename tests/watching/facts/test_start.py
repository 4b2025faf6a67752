"""A weight as its constructor drew it is told from one that somebody chose."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nethook.watching.facts.start import is_untouched


@pytest.mark.parametrize("layer", [nn.Linear(8, 8), nn.Conv2d(3, 4, 3), nn.Embedding(9, 4)])
def test_as_it_was_made(layer):
    assert is_untouched(layer.weight)


def test_what_somebody_put_there():
    initialised, kernel, constant = nn.Linear(8, 8), nn.Conv2d(1, 1, 3), nn.LayerNorm(8)
    nn.init.orthogonal_(initialised.weight)
    kernel.weight.data.copy_(torch.tensor([[0.0, 1, 0], [1, -4, 1], [0, 1, 0]]))
    given = nn.Embedding.from_pretrained(torch.randn(4, 4))
    with torch.inference_mode():
        inference = torch.randn(3, 3)
    for weight in (initialised.weight, kernel.weight, constant.weight, given.weight, inference):
        assert not is_untouched(weight)
    assert not is_untouched(nn.Parameter(torch.empty(0, 3)))
