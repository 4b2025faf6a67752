"""Forecasts of load by doubly residual blocks: backcasts are taken away, forecasts add up; windows are scaled each by itself.

expect: nothing
style: smape loss, many series, the last part in time held out, an ensemble of two
metric: smape of the held-out day, lower is better
"""

import argparse
import math

import torch
import torch.nn as nn

BACK, AHEAD = 48, 12


class Block(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.fc = nn.Sequential(
            nn.Linear(BACK, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.back, self.ahead = nn.Linear(width, BACK), nn.Linear(width, AHEAD)

    def forward(self, x):
        h = self.fc(x)
        return self.back(h), self.ahead(h)


class NBeats(nn.Module):
    def __init__(self, blocks=4):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(blocks))

    def forward(self, x):
        level = x.mean(1, keepdim=True)
        rest, total = x / level - 1, 0.0
        for block in self.blocks:
            back, ahead = block(rest)
            rest, total = rest - back, total + ahead
        return (total + 1) * level


def smape(guess, truth):
    return (2 * (guess - truth).abs() / (guess.abs() + truth.abs() + 1e-6)).mean()


def load(n=60, length=400):
    t = torch.arange(length)
    size, phase = 10 ** (2 * torch.rand(n, 1)), 6.28 * torch.rand(n, 1)
    day = (
        1
        + 0.4 * torch.sin(2 * math.pi * t / 24 + phase)
        + 0.15 * torch.sin(2 * math.pi * t / 12 + 2 * phase)
    )
    week = 1 + 0.15 * torch.sin(2 * math.pi * t / 168 + phase)
    return size * day * week * (1 + 0.04 * torch.randn(n, length))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=700)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    series = load()
    past, future = series[:, :-AHEAD], series[:, -AHEAD:]
    members = []
    for member in range(2):
        model = NBeats()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        milestones = torch.optim.lr_scheduler.MultiStepLR(
            optimizer, [args.steps // 2, args.steps * 3 // 4], 0.3
        )
        for step in range(args.steps):
            rows = torch.randint(len(past), (64,))
            at = torch.randint(past.size(1) - BACK - AHEAD + 1, (64,))
            windows = past[rows[:, None], at[:, None] + torch.arange(BACK + AHEAD)]
            loss = smape(model(windows[:, :BACK]), windows[:, BACK:])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            milestones.step()
            if step % 175 == 0:
                print(f"member {member} step {step} smape {loss.item():.4f}")
        members.append(model.eval())
    with torch.no_grad():
        forecast = torch.stack([m(past[:, -BACK:]) for m in members]).mean(0)
    print("metric:", smape(forecast, future).item())


if __name__ == "__main__":
    main()
