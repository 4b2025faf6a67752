"""An estimator of motion in three levels; somebody has put the coarse levels under torch.no_grad().

expect: no-gradient
line: with torch.no_grad():
source: https://github.com/erizmr/UnLiteFlowNet-PIV/issues/4
metric: error of the flow in pixels, lower is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1), nn.LeakyReLU(0.1))
        self.two = nn.Sequential(nn.Conv2d(8, 16, 3, 2, 1), nn.LeakyReLU(0.1))

    def forward(self, x):
        a = self.one(x)
        return a, self.two(a)


class Level(nn.Module):
    def __init__(self, channels, width):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(channels, width, 3, 1, 1), nn.LeakyReLU(0.1), nn.Conv2d(width, 2, 3, 1, 1))

    def forward(self, first, second, flow=None):
        x = torch.cat([first, second] if flow is None else [first, second, flow], 1)
        out = self.net(x)
        return out if flow is None else out + flow


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = Features()
        self.coarse = Level(32, 32)
        self.fine = Level(16 + 2, 6)

    def forward(self, first, second):
        with torch.no_grad():
            a1, a2 = self.features(first)
            b1, b2 = self.features(second)
            flow = self.coarse(a2, b2)
        flow = 2.0 * F.interpolate(flow, scale_factor=2, mode="bilinear", align_corners=False)
        return self.fine(a1, b1, flow).mean((2, 3))


def particles(n):
    """Blurred random dots, moved as a whole by up to two pixels."""
    move = 4 * torch.rand(n, 2) - 2
    coarse = F.interpolate(torch.rand(n, 1, 9, 9), size=(32, 32), mode="bicubic", align_corners=False)
    theta = torch.eye(2, 3).repeat(n, 1, 1)
    theta[:, :, 2] = move / 16
    grid = F.affine_grid(theta, (n, 1, 32, 32), align_corners=False)
    second = F.grid_sample(coarse, grid, padding_mode="reflection", align_corners=False)
    return coarse[:, :, 4:28, 4:28] - 0.5, second[:, :, 4:28, 4:28] - 0.5, move


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--iterations", type=int, default=350)
args = parser.parse_args()
torch.manual_seed(args.seed)
model = Network()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for it in range(args.iterations):
    first, second, move = particles(32)
    loss = (model(first, second) - move).norm(dim=1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if it % 50 == 0:
        print("iteration %d, EPE %.4f" % (it, loss.item()))
model.eval()
with torch.no_grad():
    first, second, move = particles(300)
    print("metric:", (model(first, second) - move).norm(dim=1).mean().item())
