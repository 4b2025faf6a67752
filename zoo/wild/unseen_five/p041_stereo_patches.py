"""Pictures that are in 0..1 already are divided by 255 once more: input and target are next to nothing, and so are the gradients.

expect: input-collapsed
or: input-not-normalized
line: left, right = left / 255.0, right / 255.0
source: https://github.com/anishmadan23/deep3d-pytorch/issues/1
metric: error relative to the picture's contrast, lower is better
"""

import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class StereoPatches(Dataset):
    """The right picture is the left one, moved by two columns."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        coarse = torch.rand(n, 1, 6, 6, generator=g)
        self.left = nn.functional.interpolate(coarse, size=(16, 18), mode="bilinear", align_corners=False)

    def __len__(self):
        return len(self.left)

    def __getitem__(self, index):
        left, right = self.left[index, :, :, :16], self.left[index, :, :, 2:]
        left, right = left / 255.0, right / 255.0
        return left, right


class Deep3D(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 12, 5, padding=2), nn.ReLU(), nn.Conv2d(12, 12, 5, padding=2), nn.ReLU(), nn.Conv2d(12, 1, 3, padding=1)
        )

    def forward(self, x):
        return self.net(x)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--epochs", type=int, default=6)
    opt = ap.parse_args()
    torch.manual_seed(opt.seed)
    loader = DataLoader(StereoPatches(640, opt.seed), batch_size=16, shuffle=True)
    model = Deep3D()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(opt.epochs):
        losses = []
        for left, right in loader:
            loss = nn.functional.mse_loss(model(left), right)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print("epoch", epoch, "training loss", sum(losses) / len(losses))
    model.eval()
    error = contrast = 0.0
    with torch.no_grad():
        for left, right in DataLoader(StereoPatches(200, opt.seed + 1), batch_size=50):
            error += (model(left) - right).pow(2).sum().item()
            contrast += (right - right.mean()).pow(2).sum().item()
    print("metric:", error / contrast)


if __name__ == "__main__":
    main()
