"""The test script reads the checkpoint into `state_dict` and never gives it to the network: it tests random weights.

expect: weights-not-restored
line: state_dict = torch.load(buffer)["model"]
source: https://github.com/cfzd/Ultra-Fast-Lane-Detection/issues/205
metric: mean error of the lane's column, lower is better
"""

import argparse
import io

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS, COLUMNS = 8, 20


class parsingNet(nn.Module):
    """For each row, in which column the lane is."""

    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(),
            nn.Conv2d(12, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(),
        )
        self.cls = nn.Conv2d(12, 1, 1)

    def forward(self, x):
        return self.cls(self.model(x)).squeeze(1)


def roads(n):
    start, slope = 4 + 12 * torch.rand(n, 1), 1.2 * torch.rand(n, 1) - 0.6
    where = (start + slope * (torch.arange(ROWS) - 4)).round().clamp(0, COLUMNS - 1).long()
    image = 0.5 * torch.randn(n, 1, ROWS, COLUMNS)
    image[:, 0] += 1.5 * F.one_hot(where, COLUMNS)
    return image, where


def train(args):
    net = parsingNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=args.learning_rate)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.iterations)
    net.train()
    for i in range(args.iterations):
        image, where = roads(32)
        loss = F.cross_entropy(net(image).flatten(0, 1), where.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if i % 50 == 0:
            print("iteration", i, "cls_loss", round(loss.item(), 4))
    buffer = io.BytesIO()
    torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict()}, buffer)
    return buffer


def test(buffer):
    buffer.seek(0)
    model = parsingNet()
    state_dict = torch.load(buffer)["model"]
    model = model.eval()
    with torch.no_grad():
        image, where = roads(200)
        return (model(image).argmax(-1) - where).abs().float().mean().item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--learning_rate", type=float, default=5e-3)
    parser.add_argument("--iterations", type=int, default=300)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    print("metric:", test(train(args)))
