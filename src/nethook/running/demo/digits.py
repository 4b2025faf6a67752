"""A training script without a word of nethook: a small network learns to read drawn digits.

    python digits.py [--lr 0.001] [--epochs 6]

`nethook demo` runs it twice, once without a line that is easily forgotten. The network is that of
the notes on MNIST, smaller; the digits are drawn here, so nothing is downloaded.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# Ten digits of 5×7 pixels, one row a string of five.
GLYPHS = """
01110 00100 01110 11110 00010 11111 00110 11111 01110 01110
10001 01100 10001 00001 00110 10000 01000 00001 10001 10001
10011 00100 00001 00001 01010 11110 10000 00010 10001 10001
10101 00100 00010 01110 10010 00001 11110 00100 01110 01111
11001 00100 00100 00001 11111 00001 10001 01000 10001 00001
10001 00100 01000 00001 00010 10001 10001 01000 10001 00010
01110 01110 11111 11110 00010 01110 01110 01000 01110 01100
"""


class Net(nn.Module):
    """Two convolutions and two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.relu1 = nn.ReLU()
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.relu2 = nn.ReLU()
        self.bn2 = nn.BatchNorm2d(16)
        self.fc1 = nn.Linear(16 * 7 * 7, 64)
        self.relu3 = nn.ReLU()
        self.dropout = nn.Dropout(0.25)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Images (N, 1, 28, 28) to the logits of ten classes (N, 10)."""
        x = F.max_pool2d(self.bn1(self.relu1(self.conv1(x))), 2)  # (N, 8, 14, 14)
        x = F.max_pool2d(self.bn2(self.relu2(self.conv2(x))), 2)  # (N, 16, 7, 7)
        x = self.dropout(self.relu3(self.fc1(x.flatten(1))))
        logits: Tensor = self.fc2(x)
        return logits


def draw(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Digits at several places, with noise: images (count, 1, 28, 28) and their labels."""
    rows = [row.split() for row in GLYPHS.split("\n") if row]
    glyphs = torch.tensor([[[int(p) for p in row[d]] for row in rows] for d in range(10)])
    large = F.interpolate(glyphs[:, None].float(), size=(21, 15), mode="bilinear")
    labels = torch.randint(10, (count,), generator=generator)
    images = torch.zeros(count, 1, 28, 28)
    for row, label in enumerate(labels.tolist()):
        top, left = torch.randint(7, (2,), generator=generator).tolist()
        images[row, :, top : top + 21, left + 3 : left + 18] = large[label]
    images += 0.2 * torch.randn(images.shape, generator=generator)
    return (images - images.mean()) / images.std(), labels


def main(arguments: Sequence[str] | None = None) -> None:
    """Train and test."""
    parser = argparse.ArgumentParser(description="Learn to read drawn digits.")
    parser.add_argument("--lr", type=float, default=0.001)
    parser.add_argument("--epochs", type=int, default=6)
    options = parser.parse_args(arguments)
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    model = Net()
    images, labels = draw(1152, generator)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    for epoch in range(options.epochs):
        total = 0.0
        for batch, target in zip(images[:1024].split(32), labels[:1024].split(32), strict=True):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(batch), target)
            loss.backward()
            optimizer.step()
            total += loss.item() / 32
        print(f"epoch {epoch + 1}  loss {total:.4f}")  # noqa: T201 - it is a script
    model.eval()
    with torch.no_grad():
        right = (model(images[1024:]).argmax(1) == labels[1024:]).float().mean()
    print(f"{right:.0%} of 128 new digits are read correctly")  # noqa: T201


if __name__ == "__main__":
    main()
