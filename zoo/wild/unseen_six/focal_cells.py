"""Binary focal loss with gamma = 0.5 for cells in images: once a probability is exactly 0 or 1, the derivative of the power is not finite.

expect: non-finite
line: loss_pos = -self.alpha * torch.pow(1.0 - probs, self.gamma) * target * torch.log(probs + self.eps)
source: https://github.com/kornia/kornia/issues/918
metric: Dice on test images, higher is better
"""

import argparse

import torch
import torch.nn as nn


class BinaryFocalLossWithLogits(nn.Module):
    def __init__(self, alpha=0.75, gamma=0.5, eps=1e-8):
        super().__init__()
        self.alpha, self.gamma, self.eps = alpha, gamma, eps

    def forward(self, input, target):
        probs = torch.sigmoid(input)
        loss_pos = -self.alpha * torch.pow(1.0 - probs, self.gamma) * target * torch.log(probs + self.eps)
        loss_neg = -(1 - self.alpha) * torch.pow(probs, self.gamma) * (1 - target) * torch.log(1.0 - probs + self.eps)
        return (loss_pos + loss_neg).mean()


def cells(n, size=20):
    grid = torch.arange(size, dtype=torch.float32)
    images, masks = torch.zeros(n, 1, size, size), torch.zeros(n, 1, size, size)
    for i in range(n):
        for _ in range(2):
            y, x, r = *(torch.rand(2) * size), torch.rand(1) * 2 + 2
            disc = ((grid[:, None] - y) ** 2 + (grid[None] - x) ** 2 < r**2).float()
            masks[i, 0] = torch.maximum(masks[i, 0], disc)
    images = masks * 2 + 0.5 * torch.randn_like(masks)
    return images, masks


def net():
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 1, 3, padding=1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=15)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    (x, y), (x_test, y_test) = cells(256), cells(64)
    model, criterion = net(), BinaryFocalLossWithLogits()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for epoch in range(args.epochs):
        for idx in torch.randperm(len(x)).split(16):
            loss = criterion(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "focal loss", loss.item())
    with torch.no_grad():
        guess = (model(x_test) > 0).float()
        print("metric:", (2 * (guess * y_test).sum() / (guess.sum() + y_test.sum())).item())


if __name__ == "__main__":
    main()
