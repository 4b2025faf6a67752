"""next(iter(train_loader)) inside the loop makes a new iterator each time: it is always the first batch that comes.

expect: repeated-batch
line: patch, label = next(iter(train_loader))
source: https://github.com/leohsuofnthu/Pytorch-IterativeFCN/issues/7
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def scans(n):
    """A vertebra of one of three kinds in a noisy volume of 8 x 8 x 8."""
    kind = torch.randint(0, 3, (n,))
    volume = 0.7 * torch.randn(n, 1, 8, 8, 8)
    at = torch.randint(1, 5, (n, 3))
    for i in range(n):
        z, y, x = at[i].tolist()
        shape = [(1, 3, 3), (3, 1, 3), (3, 3, 1)][int(kind[i])]
        volume[i, 0, z : z + shape[0], y : y + shape[1], x : x + shape[2]] += 2.0
    return volume, kind


class IterativeFCN(nn.Module):
    def __init__(self, channels=8):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv3d(1, channels, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool3d(2),
            nn.Conv3d(channels, channels, 3, padding=1), nn.ReLU(inplace=True),
        )
        self.dense = nn.Linear(channels * 64, 3)

    def forward(self, x):
        return self.dense(self.conv(x).flatten(1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--iterations", type=int, default=300)
    parser.add_argument("--eval_iters", type=int, default=50)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    train_loader = DataLoader(TensorDataset(*scans(900)), batch_size=16)
    test_patch, test_label = scans(300)
    model = IterativeFCN()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    batches = iter(())
    for iteration in range(args.iterations):
        patch, label = next(iter(train_loader))
        model.train()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(patch), label)
        loss.backward()
        optimizer.step()
        if (iteration + 1) % args.eval_iters == 0:
            print(f"iteration {iteration + 1}: train loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        print("metric:", (model(test_patch).argmax(1) == test_label).float().mean().item())
