"""“Extracting intermediate representations […] for use in […] transfer learning”, with a trace.

The trunk runs without gradients and only as far as needed; a new head is trained on the output of
one of its layers.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import nethook


def data(size: int) -> tuple[Tensor, Tensor]:
    """Points on rings; the class is the ring, and no straight line separates the classes."""
    labels = torch.randint(2, (size,))
    angle = 2 * torch.pi * torch.rand(size)
    radius = 1.0 + labels + 0.2 * torch.randn(size)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1), labels


@torch.no_grad()
def features(model: nn.Module, x: Tensor, at: str) -> Tensor:
    """The output of the layer `at`; the forward ends there, and so does the block."""
    model.eval()
    with nethook.trace(model, at, stop=True) as tape:
        model(x)
    found: Tensor = tape[at].output
    return found


def fit(head: nn.Module, x: Tensor, labels: Tensor, steps: int = 200) -> float:
    """Train a head; the accuracy on what it was trained on."""
    optimizer = torch.optim.Adam(head.parameters(), lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(head(x), labels).backward()
        optimizer.step()
    return float((head(x).argmax(1) == labels).float().mean())


def main() -> None:
    """Train a trunk on one task, and a head on its features on another."""
    torch.manual_seed(0)
    trunk = nn.Sequential(
        OrderedDict(fc1=nn.Linear(2, 32), relu1=nn.ReLU(), fc2=nn.Linear(32, 32), relu2=nn.ReLU()),
    )
    trunk.append(nn.Linear(32, 2))
    x, labels = data(400)
    print(f"trunk, rings 1 and 2:          {fit(trunk, x, labels):.0%}")

    x, labels = data(400)
    x = 1.5 * x  # other rings
    print(f"linear head on the points:     {fit(nn.Linear(2, 2), x, labels):.0%}")
    for at in ("relu1", "relu2"):
        inner = features(trunk, x, at)
        accuracy = fit(nn.Linear(inner.shape[1], 2), inner, labels)
        print(f"linear head on {at}'s output: {accuracy:.0%}  {tuple(inner.shape)}")
    print("the features carry no graph:", not inner.requires_grad)
    print("left behind:", nethook.audit(trunk))


if __name__ == "__main__":
    main()
