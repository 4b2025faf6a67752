"""A copy with the weights of a fresh network."""

from __future__ import annotations

import torch
from torch import nn

from nethook.examining.probes.fresh_weights import draw_weights


def test_no_weight_stays_zero_and_a_signal_keeps_its_size() -> None:
    model = nn.Sequential(nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 4))
    for weight in model.parameters():
        nn.init.zeros_(weight)
    draw_weights(model)
    assert all(bool((weight != 0).all()) for weight in model.parameters())
    out = model(torch.randn(64, 256, generator=torch.Generator().manual_seed(0)))
    assert 0.3 < float(out.detach().std()) < 3


def test_the_same_weights_every_time_and_no_random_state_moves() -> None:
    one, other = nn.Linear(5, 3), nn.Linear(5, 3)
    before = torch.get_rng_state()
    draw_weights(one)
    draw_weights(other)
    assert torch.equal(one.weight, other.weight)
    assert torch.equal(before, torch.get_rng_state())


def test_whole_numbers_stay() -> None:
    model = nn.Linear(3, 2)
    model.steps = nn.Parameter(torch.tensor([7]), requires_grad=False)
    draw_weights(model)
    assert model.steps.item() == 7
