"""A scheduler was added as `if scheduler: scheduler.step() else: optimizer.step()`; with it the loss no longer comes down.

expect: missing-step
line: scheduler.step()
source: https://github.com/ClementPinard/SfmLearner-Pytorch/issues/5
metric: test error in depth, lower is better
"""

import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser(description="Depth of blobs from two views")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--epoch-size", type=int, default=30)
parser.add_argument("-b", "--batch-size", type=int, default=16)
parser.add_argument("--lr", type=float, default=2e-3)
parser.add_argument("--scheduler", choices=["none", "step"], default="step")


def two_views(n):
    """A blob at x in the left view and at x - 6 / depth in the right one."""
    place, depth = 6 + 6 * torch.rand(n, 1), 1 + 2 * torch.rand(n, 1)
    axis = torch.arange(16.0)
    left = torch.exp(-((axis - place) ** 2) / 2)
    right = torch.exp(-((axis - place + 6 / depth) ** 2) / 2)
    return torch.stack([left, right], 1) + 0.02 * torch.randn(n, 2, 16), depth


class DispNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(2, 16, 5, padding=2), nn.ReLU(inplace=True), nn.Conv1d(16, 32, 3, padding=1), nn.ReLU(inplace=True)
        )
        self.fc = nn.Sequential(nn.Linear(32 * 16, 32), nn.ReLU(inplace=True), nn.Linear(32, 1))

    def forward(self, views):
        return self.fc(self.conv(views).flatten(1))


def train(args, net, optimizer, scheduler):
    net.train()
    losses = []
    for _ in range(args.epoch_size):
        views, depth = two_views(args.batch_size)
        loss = (net(views) - depth).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        if scheduler:
            scheduler.step()
        else:
            optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def main():
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    net = DispNet()
    optimizer = torch.optim.Adam(net.parameters(), args.lr, betas=(0.9, 0.999))
    scheduler = None
    if args.scheduler == "step":
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=args.epochs * args.epoch_size // 3, gamma=0.5)
    for epoch in range(args.epochs):
        print(" * Avg Loss : {:.3f}".format(train(args, net, optimizer, scheduler)))
    net.eval()
    with torch.no_grad():
        views, depth = two_views(500)
        print("metric:", (net(views) - depth).abs().mean().item())


if __name__ == "__main__":
    main()
