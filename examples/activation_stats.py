"""“Monitor activation statistics during training”: of every convolution, at every step.

Two changes to the notes' hook. Numbers stay on their device until they are read, so that a GPU does
not have to wait four times per layer; and the evaluation in between is left out.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import nethook

STEPS = 30


def batch(size: int = 32) -> tuple[Tensor, Tensor]:
    """Noisy images with a bright quarter: which quarter is the class."""
    labels = torch.randint(4, (size,))
    images = 0.5 * torch.randn(size, 1, 16, 16)
    for image, label in zip(images, labels.tolist(), strict=True):
        row, column = divmod(label, 2)
        image[:, 8 * row : 8 * row + 8, 8 * column : 8 * column + 8] += 1
    return images, labels


def main() -> None:
    """Train, evaluate from time to time, and print how the statistics changed."""
    torch.manual_seed(0)
    layers = OrderedDict(conv1=nn.Conv2d(1, 8, 3), relu1=nn.ReLU(), conv2=nn.Conv2d(8, 8, 3))
    layers |= OrderedDict(relu2=nn.ReLU(), pool=nn.AdaptiveAvgPool2d(2))
    model = nn.Sequential(layers | OrderedDict(flat=nn.Flatten(), fc=nn.Linear(32, 4)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)

    cb = nethook.Callbacks(model)
    stats = cb.activation_stats(nn.Conv2d)
    for step in range(STEPS):
        images, labels = batch()
        with cb:  # only the training step
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
        if (step + 1) % 10 == 0:
            with torch.no_grad():
                images, labels = batch(200)
                right = float((model(images).argmax(1) == labels).float().mean())
            print(f"step {step + 1:2}  loss {loss.item():.3f}  accuracy {right:.0%}")

    for name in stats:
        history = stats[name]
        print(f"{name}: {len(history['mean'])} values of each, none from evaluation")
        for what in ("mean", "std", "min", "max"):
            shown = "  ".join(f"{value:+6.2f}" for value in history[what][:: STEPS // 5])
            print(f"  {what:4}  {shown}")


if __name__ == "__main__":
    main()
