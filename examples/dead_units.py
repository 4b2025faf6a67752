"""“Identify dead ReLU units”: units that no sample activates over a whole window of training.

The notes count how many outputs are exactly zero in a batch. In a healthy layer half of them are,
so that number shows nothing. A dead unit is zero for every sample of many batches.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import nethook

WINDOW = 20


def train(rate: float, steps: int = 60) -> list[str]:
    """Train at a learning rate; one line for each window of steps."""
    torch.manual_seed(0)
    model = nn.Sequential(
        OrderedDict(fc1=nn.Linear(8, 64), relu1=nn.ReLU(), fc2=nn.Linear(64, 64), relu2=nn.ReLU()),
    )
    model.append(nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)

    cb = nethook.Callbacks(model)
    dead = cb.dead_units(nn.ReLU)
    zeros: list[float] = []  # what the notes measure, to compare

    @cb.after("relu2")
    def count(output: Tensor) -> None:
        zeros.append(float((output == 0).float().mean()))

    lines = []
    with cb:
        for step in range(1, steps + 1):
            x = torch.randn(64, 8)
            optimizer.zero_grad()
            F.mse_loss(model(x).squeeze(1), x.sum(1)).backward()
            optimizer.step()
            if step % WINDOW == 0:
                share = sum(zeros) / len(zeros)
                units = "  ".join(f"{name} {int(dead[name].sum()):2} of 64" for name in dead)
                lines.append(f"  steps {step - WINDOW:2}-{step:2}  {units}  zeros {share:.0%}")
                dead.reset()
                zeros.clear()
    return lines


def main() -> None:
    """A suitable learning rate, and one that kills units."""
    for rate in (0.02, 0.5):
        print(f"learning rate {rate}: dead units, and zeros in relu2")
        print("\n".join(train(rate)))


if __name__ == "__main__":
    main()
