"""Running statistics that are written in evaluation mode."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from nethook.watching.loop.written_buffers import LOOKED_AT, WrittenBuffers


class Always(nn.Module):
    """Normalises by its batch whatever the mode is."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("var", torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.batch_norm(x, self.mean, self.var, training=True)


def written(module: nn.Module, follower: WrittenBuffers | None = None) -> list[str]:
    follower = follower or WrittenBuffers()
    model = nn.Sequential(module).eval()
    follower.begins(model)
    with torch.no_grad():
        for _ in range(2):
            model(torch.randn(8, 4))
    return follower.ended()


def test_a_norm_that_is_always_in_training_mode():
    assert written(Always()) == ["0.mean", "0.var"]


def test_norms_in_evaluation_mode_write_nothing():
    assert written(nn.BatchNorm1d(4)) == []
    assert written(nn.BatchNorm1d(4, track_running_stats=False)) == []
    assert written(nn.LayerNorm(4)) == []


def test_a_norm_that_was_put_into_training_mode_is_known_by_its_mode():
    model = nn.Sequential(nn.BatchNorm1d(4)).eval()
    model[0].train()
    follower = WrittenBuffers()
    follower.begins(model)
    model(torch.randn(8, 4))
    assert follower.ended() == []


class Cache(nn.Module):
    """Writes what it has seen, and counts."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(8, 4))
        self.register_buffer("count", torch.zeros((), dtype=torch.long))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.copy_(x)
        self.count += 1
        return x


def test_caches_are_no_statistics():
    assert written(Cache()) == []


def test_a_few_passes_are_enough():
    follower = WrittenBuffers()
    assert follower.ended() == []
    for _ in range(LOOKED_AT):
        assert written(Always(), follower)
    assert written(Always(), follower) == []
