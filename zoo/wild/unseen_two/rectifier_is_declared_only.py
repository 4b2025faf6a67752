"""BasicConv2d makes a ReLU in __init__ and never uses it in forward: the whole network is linear.

expect: missing-activation
line: return self.bn(x)
source: https://github.com/DengPingFan/Inf-Net/issues/43
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn


class BasicConv2d(nn.Module):
    def __init__(self, in_planes, out_planes, kernel_size=3, padding=1):
        super().__init__()
        self.conv = nn.Conv2d(in_planes, out_planes, kernel_size, padding=padding, bias=False)
        self.bn = nn.BatchNorm2d(out_planes)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        x = self.conv(x)
        return self.bn(x)


class TextureNet(nn.Module):
    def __init__(self, channels=16):
        super().__init__()
        self.conv1 = BasicConv2d(1, channels)
        self.conv2 = BasicConv2d(channels, channels)
        self.conv3 = BasicConv2d(channels, channels)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, 3)

    def forward(self, x):
        x = self.conv3(self.conv2(self.conv1(x)))
        return self.fc(self.pool(x).flatten(1))


def textures(n):
    """Stripes across, stripes along, or a chessboard; each at any phase, so that the mean says nothing."""
    kind = torch.randint(0, 3, (n,))
    t = torch.arange(12.0)
    phase = 6.283 * torch.rand(n, 2, 1)
    rows, cols = torch.sin(2.1 * t + phase[:, 0]), torch.sin(2.1 * t + phase[:, 1])
    across, along = rows[:, :, None].expand(-1, -1, 12), cols[:, None, :].expand(-1, 12, -1)
    both = rows[:, :, None] * cols[:, None, :] * 1.4
    image = torch.where((kind == 0)[:, None, None], across, torch.where((kind == 1)[:, None, None], along, both))
    return (image + 0.5 * torch.randn(n, 12, 12))[:, None], kind


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    model = TextureNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x, y = textures(1500)
    for epoch in range(8):
        model.train()
        for rows in torch.randperm(1500).split(30):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1:02d} loss {loss.item():.4f}")
    model.eval()
    x, y = textures(500)
    with torch.no_grad():
        print("metric:", (model(x).argmax(1) == y).float().mean().item())
