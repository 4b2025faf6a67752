"""PointNet on four solids; nll_loss was fed the raw scores of the last layer instead of their log-softmax, the loss ran away below zero and the classes came out wrong.

expect: output-misfits-loss
or: negative-loss
line: F.nll_loss(
source: https://github.com/yanx27/Pointnet_Pointnet2_pytorch/issues/30
metric: test accuracy, higher is better
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def solids(n, points=48):
    """Sphere, cube, cylinder, cone; random size, points on the surface."""
    label = torch.randint(0, 4, (n,))
    u = torch.randn(n, points, 3)
    sphere = u / u.norm(dim=-1, keepdim=True)
    cube = (torch.rand(n, points, 3) * 2 - 1)
    cube = cube / cube.abs().amax(-1, keepdim=True)
    angle = torch.rand(n, points) * 6.2832
    z = torch.rand(n, points) * 2 - 1
    cylinder = torch.stack([angle.cos(), angle.sin(), z], -1)
    r = (1 - z) / 2
    cone = torch.stack([r * angle.cos(), r * angle.sin(), z], -1)
    stack = torch.stack([sphere, cube, cylinder, cone], 1)
    cloud = stack[torch.arange(n), label]
    scale = 0.7 + 0.6 * torch.rand(n, 1, 1)
    return cloud * scale + 0.04 * torch.randn(n, points, 3), label


class PointNetCls(nn.Module):
    def __init__(self, k=4):
        super().__init__()
        self.conv1 = nn.Conv1d(3, 32, 1)
        self.conv2 = nn.Conv1d(32, 64, 1)
        self.fc1 = nn.Linear(64, 32)
        self.fc2 = nn.Linear(32, k)

    def forward(self, x):
        x = x.transpose(2, 1)
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = torch.max(x, 2)[0]
        x = F.relu(self.fc1(x))
        return self.fc2(x)


class PointNetLoss(nn.Module):
    def forward(self, labels_pred, label):
        label_loss = F.nll_loss(labels_pred, label)
        return label_loss


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--steps", type=int, default=400)
    a = p.parse_args()
    torch.manual_seed(a.seed)
    model, criterion = PointNetCls(), PointNetLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(a.steps):
        cloud, label = solids(32)
        loss = criterion(model(cloud), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 99:
            print("step %d, label loss %.3f" % (step + 1, loss.item()))
    with torch.no_grad():
        cloud, label = solids(1000)
        acc = (model(cloud).argmax(1) == label).float().mean().item()
    print("metric: %.4f" % acc)
