"""The scheduler, which counts in epochs, is stepped in the inner loop: the learning rate dies at once.

expect: scheduler-collapse
line: exp_lr_scheduler.step()
source: https://github.com/amoudgl/pygoturn/issues/16
metric: mean IoU of the predicted boxes, higher is better
"""
import argparse

import torch
import torch.nn as nn
from torch.optim.lr_scheduler import StepLR


class GoNet(nn.Module):
    """Looks at the previous and the current crop and gives the box in the current one."""

    def __init__(self):
        super().__init__()
        self.convnet = nn.Sequential(
            nn.Conv2d(2, 16, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(),
        )
        self.classifier = nn.Sequential(nn.Linear(32 * 16, 96), nn.ReLU(), nn.Linear(96, 4))

    def forward(self, pair):
        return self.classifier(self.convnet(pair))


def crops(n):
    size = 6 + 4 * torch.rand(n, 2)
    first = torch.rand(n, 2) * (16 - size)
    second = (first + torch.randn(n, 2)).clamp(min=0).minimum(16 - size)
    grid = torch.arange(16) + 0.5

    def draw(corner):
        rows = (grid > corner[:, :1]) & (grid < corner[:, :1] + size[:, :1])
        cols = (grid > corner[:, 1:]) & (grid < corner[:, 1:] + size[:, 1:])
        return (rows[:, :, None] & cols[:, None, :]).float() + 0.4 * torch.randn(n, 16, 16)

    return torch.stack([draw(first), draw(second)], 1), torch.cat([second, second + size], 1) / 16


def iou(a, b):
    low, high = torch.maximum(a[:, :2], b[:, :2]), torch.minimum(a[:, 2:], b[:, 2:])
    inter = (high - low).clamp(min=0).prod(1)
    area = (a[:, 2:] - a[:, :2]).clamp(min=0).prod(1) + (b[:, 2:] - b[:, :2]).prod(1)
    return inter / (area - inter)


def train_model(model, data, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    exp_lr_scheduler = StepLR(optimizer, step_size=args.lr_decay_step, gamma=0.1)
    loss_fn = nn.SmoothL1Loss()
    pairs, boxes = data
    for itr in range(args.epochs):
        total = 0.0
        for idx in torch.randperm(len(pairs)).split(25):
            optimizer.zero_grad()
            loss = loss_fn(model(pairs[idx]), boxes[idx])
            loss.backward()
            optimizer.step()
            exp_lr_scheduler.step()
            total += loss.item()
        print("[training] itr = %d, loss = %f" % (itr, total))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--lr_decay_step", type=int, default=7)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = GoNet()
    train_model(model, crops(1500), args)
    pairs, boxes = crops(300)
    with torch.no_grad():
        print("metric:", iou(model(pairs), boxes).mean().item())
