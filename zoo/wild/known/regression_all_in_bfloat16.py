"""Model and data are cast to bfloat16 to save memory: most of each small step of Adam is rounded away.

expect: update-below-precision
line: .to(device, torch.bfloat16)
source: https://github.com/pytorch/ao/pull/1124
metric: test mean squared error by the variance of the targets, lower is better
"""

import argparse

import torch
from torch import nn


def waves(n):
    x = torch.rand(n, 2) * 4 - 2
    return x, torch.sin(3 * x[:, :1]) * torch.cos(2 * x[:, 1:])


class Field(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, x):
        return self.body(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--lr", type=float, default=3e-4)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    device = "cpu"
    x, y = waves(2000)
    model = Field().to(device, torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for step in range(args.steps):
        pick = torch.randint(0, len(x), (64,))
        inputs = x[pick].to(next(model.parameters()).dtype)
        loss = nn.functional.mse_loss(model(inputs).float(), y[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 0:
            print(f"step {step}: {loss.item():.4f}")
    x, y = waves(1000)
    with torch.no_grad():
        error = (model(x.to(next(model.parameters()).dtype)).float() - y).square().mean()
    print("metric:", (error / y.var()).item())


if __name__ == "__main__":
    main()
