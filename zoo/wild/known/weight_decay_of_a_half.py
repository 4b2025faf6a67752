"""weight_decay 0.5 from the first line of my solver file: all weights go to zero and any input produces the same output.

expect: weight-decay-too-strong
line: weight_decay=0.5
source: https://github.com/BVLC/caffe/issues/1396
metric: test accuracy of the joint's quadrant, higher is better
"""

import argparse

import torch
import torch.nn as nn


class PoseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.conv2 = nn.Conv2d(12, 12, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.ip1 = nn.Linear(12 * 9, 32)
        self.ip2 = nn.Linear(32, 2)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        return self.ip2(torch.relu(self.ip1(x.flatten(1))))


def frames(n):
    """A bright joint somewhere on 12×12; its position goes from -1 to 1."""
    pos = torch.rand(n, 2) * 2 - 1
    grid = torch.linspace(-1, 1, 12)
    d = (grid[None, :, None] - pos[:, 0, None, None]) ** 2 + (grid[None, None, :] - pos[:, 1, None, None]) ** 2
    return 2 * torch.exp(-8 * d).unsqueeze(1) + 0.2 * torch.randn(n, 1, 12, 12), pos


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    net = PoseNet()
    solver = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=0.5)
    euclidean = nn.MSELoss()
    for it in range(300):
        data, label = frames(32)
        loss = euclidean(net(data), label)
        solver.zero_grad()
        loss.backward()
        solver.step()
        if it % 50 == 0:
            print("Iteration %d, loss = %g" % (it, loss.item()))
    with torch.no_grad():
        data, label = frames(500)
        out = net(data)
    print("first outputs:", out[:3].tolist())
    print("metric: %.4f" % ((out > 0) == (label > 0)).all(1).float().mean().item())
