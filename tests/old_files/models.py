"""The networks and data of the files that 0.1 wrote: plain torch, for the programs and the tests.

No random numbers: every weight and every sample is a multiple of 1/128, the same with every version
of torch.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    """Numbers between -1 and 1 without a pattern."""
    state, drawn = 2 * seed + 1, []
    for _ in range(math.prod(shape)):
        state = (1103515245 * state + 12345) % 2**31
        drawn.append((state >> 16) % 257 - 128)
    return (torch.tensor(drawn) / 128).reshape(shape)


def filled(model: nn.Module) -> nn.Module:
    """The model, with weights between -1/2 and 1/2."""
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(numbers(*parameter.shape, seed=number) / 2)
    return model


def classifier(width: int = 8) -> nn.Sequential:
    """Three classes from four numbers."""
    return filled(nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 3)))


def labelled(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Samples for it; the class is the largest of the first three numbers."""
    x = numbers(count, 4, seed=seed)
    return x, x[:, :3].argmax(1)


def dead() -> nn.Sequential:
    """A regression whose first layer is always negative: every unit behind it is dead."""
    model = filled(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)))
    nn.init.constant_(model[0].bias, -3.0)
    return model


class Logarithm(nn.Module):
    """The logarithm of a positive combination of its inputs; NaN for a negative one."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(4, 4)
        self.head = nn.Linear(4, 1)
        filled(self)
        with torch.no_grad():
            self.mix.weight.abs_().add_(1 / 8)
            self.mix.bias.fill_(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.log(self.mix(x)))


def generator() -> nn.Sequential:
    """Noise of two numbers to samples of two."""
    return filled(nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 2)))


def discriminator() -> nn.Sequential:
    """Real or not."""
    return filled(nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1)))


LAYERS = 12


class Layers(nn.Module):
    """A row of layers, one for each edit of the recipe; the last is an LSTM, called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(LAYERS))
        self.lstm = nn.LSTM(4, 4, batch_first=True)
        filled(self)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + layer(x)
        once, state = self.lstm(x[:, None])
        again, _ = self.lstm(once, state)
        return again[:, 0]


def network() -> nn.Sequential:
    """A small convolutional network, whose features are extracted."""
    return filled(
        nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(4, 3),
        )
    )


class Pictures(Dataset[Any]):
    """Thirty pictures, their labels and names; from number `stop` on, Ctrl-C."""

    def __init__(self, stop: int | None = None) -> None:
        self.x = numbers(30, 1, 6, 6, seed=5)
        self.stop = stop

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, number: int) -> tuple[torch.Tensor, int, str]:
        if number == self.stop:
            raise KeyboardInterrupt
        return self.x[number], number % 3, f"picture-{number:02}"


def pictures(stop: int | None = None) -> DataLoader[Any]:
    """Batches of five of them."""
    return DataLoader(Pictures(stop), batch_size=5)
