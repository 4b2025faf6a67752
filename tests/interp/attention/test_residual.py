"""What a block adds to the residual stream, on blocks written for the test."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nethook.interp.attention.roles import roles


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        down: torch.Tensor = self.down(torch.relu(self.up(x)))
        return down


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.norm = Mlp(), Mlp(), nn.LayerNorm(4)


class Sequential(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.first(x)
        return x + self.second(self.norm(x))


class Parallel(Base):
    """Written one after the other, but the second part reads the block's input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normed = self.norm(x)
        x = x + self.first(normed)
        return x + self.second(normed)


class InPlace(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x).add_(x)
        return self.second(self.norm(x)).add_(x)


class PostNorm(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(x + self.first(x))
        return x + self.norm(self.second(x))


class NoStream(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x + self.first(x)) * self.second(x)


@pytest.mark.parametrize(
    ("kind", "layout"),
    [
        (Sequential, "sequential"), (Parallel, "parallel"), (InPlace, "sequential"),
        (PostNorm, "post-norm"), (NoStream, None),
    ],
)  # fmt: skip
def test_the_layout_of_a_block(kind: type[nn.Module], layout: str | None) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(kind(), kind())
    parts = roles(model, torch.randn(2, 3, 4))
    assert parts.layout == layout
    assert parts.blocks == ("0", "1")
    if layout in ("sequential", "parallel"):
        assert [write.address for write in parts[0].writes] == ["0.first", "0.second"]
