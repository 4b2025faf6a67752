"""“Turn gradients of linear biases to zero while backpropagating”, and clamp those into conv.

The notes put hooks into `forward`, and a model with hooks in its forward cannot run without
gradients. Here the forward contains no hooks, and the first two lines printed are the notes' own.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

import nethook
from nethook import edits


class Net(nn.Module):
    """The network of the notes, without its hooks."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 10, 2, stride=2)
        self.relu = nn.ReLU()
        self.flatten = nn.Flatten()
        self.fc1 = nn.Linear(160, 5)

    def forward(self, x: Tensor) -> Any:
        """Images (N, 3, 8, 8) to (N, 5)."""
        x = self.relu(self.conv(x))
        return self.fc1(self.flatten(x))


def show(grad: Tensor) -> None:
    """Print whether there is any negative gradient."""
    print("Gradients less than zero:", bool((grad < 0).any()))


def main() -> None:
    """With the edits, and without."""
    torch.manual_seed(0)
    net, x = Net(), torch.randn(1, 3, 8, 8)

    # At one site, edits apply in order: `show` gets the result of `clamp`.
    with nethook.edit(
        net, grads={"relu": [edits.clamp(min=0), show]}, param_grads={"fc*.bias": edits.zero()}
    ):
        out = net(x)
        (1 - out).mean().backward()
    print("The biases are", net.fc1.bias.grad)

    print("\nWithout the edits, on the same network:")
    net.zero_grad()
    with nethook.trace(net, "relu", grads=True) as tape:
        (1 - net(x)).mean().backward()
    print("  Gradients less than zero:", bool((tape["relu"].grad < 0).any()))
    grads = nethook.get_parameter(net, "fc1.bias").grad
    print("  The gradients of the biases are zero:", grads is not None and not grads.any())
    print("The biases themselves were never touched:", bool((net.fc1.bias != 0).all()))
    with torch.no_grad():
        two = net(x.repeat(2, 1, 1, 1))
    print("It runs without gradients, and on a batch of two:", tuple(two.shape))
    print("Left behind:", nethook.audit(net))


if __name__ == "__main__":
    main()
