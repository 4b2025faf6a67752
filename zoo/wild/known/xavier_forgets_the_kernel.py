"""My Xavier for convolutions adds the sides of the kernel instead of multiplying them: the value head starts saturated.

expect: bad-init-scale
or: saturated-activation, exploding-gradient
line: stddev = math.sqrt(2.0 / sum(weight.shape))
source: https://github.com/LeelaChessZero/lczero-training/pull/43
metric: test mean squared error of the value, lower is better
"""

import argparse
import math

import torch
from torch import nn
from torch.nn import functional as F


def weight_variable(weight):
    """Xavier initialization"""
    stddev = math.sqrt(2.0 / sum(weight.shape))
    with torch.no_grad():
        weight.normal_(0, stddev)


class ResidualBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return F.relu(x + self.conv2(F.relu(self.conv1(x))))


class ChessNet(nn.Module):
    def __init__(self, planes=3, channels=16, blocks=4):
        super().__init__()
        self.stem = nn.Conv2d(planes, channels, 3, padding=1)
        self.tower = nn.Sequential(*[ResidualBlock(channels) for _ in range(blocks)])
        self.value_conv = nn.Conv2d(channels, 4, 1)
        self.value_fc = nn.Linear(4 * 36, 1)
        for m in self.modules():
            if isinstance(m, (nn.Conv2d, nn.Linear)):
                weight_variable(m.weight)
                nn.init.zeros_(m.bias)

    def forward(self, planes):
        x = self.tower(F.relu(self.stem(planes)))
        x = F.relu(self.value_conv(x)).flatten(1)
        return torch.tanh(self.value_fc(x)).squeeze(1)


def positions(n):
    """6×6 boards: own pieces, the other's pieces, whose move. The value is the balance of material and centre."""
    board = torch.randint(-1, 2, (n, 6, 6))
    own, other = (board == 1).float(), (board == -1).float()
    weight = torch.full((6, 6), 0.25)
    weight[2:4, 2:4] = 0.5
    move = torch.randint(0, 2, (n, 1, 1)).float().expand(n, 6, 6)
    return torch.stack([own, other, move], 1), torch.tanh(((own - other) * weight).sum((1, 2)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    net = ChessNet()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, nesterov=True)
    for step in range(200):
        planes, z = positions(32)
        loss = F.mse_loss(net(planes), z)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimizer.step()
        if step % 40 == 0:
            print("step %d, mse=%g" % (step, loss.item()))
    with torch.no_grad():
        planes, z = positions(500)
        print("metric: %.4f" % F.mse_loss(net(planes), z).item())


if __name__ == "__main__":
    main()
