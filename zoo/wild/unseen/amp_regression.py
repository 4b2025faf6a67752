"""Regression with autocast, a gradient scaler, clipping and a one-cycle schedule, all in the order the manual gives.

expect: nothing
style: bf16 autocast and GradScaler on the CPU; gradients look huge between backward and unscale_, the first rates are tiny because the cycle starts low
"""
import argparse

import torch
from torch import nn


class ResBlock(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.fc1, self.fc2 = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x):
        return x + self.fc2(torch.relu(self.fc1(self.norm(x))))


class Net(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.embed = nn.Linear(8, d)
        self.blocks = nn.Sequential(*[ResBlock(d) for _ in range(2)])
        self.head = nn.Linear(d, 1)

    def forward(self, x):
        return self.head(self.blocks(self.embed(x))).squeeze(-1)


def friedman(n):
    x = torch.rand(n, 8)
    y = 10 * torch.sin(torch.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    return (x - 0.5) * 3.46, (y - 14.4) / 4.9


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-amp", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x, y = friedman(4000)
    x_test, y_test = friedman(1000)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.01)
    epochs, per_epoch = 6, 50
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=epochs * per_epoch)
    scaler = torch.amp.GradScaler("cpu", enabled=not args.no_amp)
    for epoch in range(epochs):
        for idx in torch.randperm(len(x)).split(80):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=not args.no_amp):
                pred = model(x[idx])
            loss = nn.functional.mse_loss(pred.float(), y[idx])
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
        print(f"epoch {epoch}: loss {loss.item():.4f} rate {scheduler.get_last_lr()[0]:.1e}")
    model.eval()
    with torch.no_grad():
        r2 = 1 - nn.functional.mse_loss(model(x_test), y_test) / y_test.var()
    print(f"metric: {r2.item():.4f}")


if __name__ == "__main__":
    main()
