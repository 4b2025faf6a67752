"""A small residual network with batch norm, trained by SGD at a rate of fifty.

expect: learning-rate-too-high
or: exploding-gradient, non-finite
half: fresh
net: cnn
"""

import torch
import torch.nn.functional as F
from common import arguments, digits, loader
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(x + self.bn2(self.conv2(y)))


class ResNet(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.fc = nn.Linear(width, 10)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.fc(x.mean((2, 3)))


def main():
    args = arguments(width=16, depth=2, samples=900)
    x, y, _, _ = digits(args.samples, image=True)
    model = ResNet(args.width, args.depth)
    optimizer = torch.optim.SGD(model.parameters(), lr=50.0, momentum=0.9)
    for epoch in range(5):
        total = 0.0
        for images, labels in loader(x, y, batch=64):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total:.4g}")


if __name__ == "__main__":
    main()
