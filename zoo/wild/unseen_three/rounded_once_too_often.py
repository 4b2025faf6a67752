"""A second round() around the straight-through estimator: its gradient is zero, and the encoder stays as it was born.

expect: no-gradient
line: torch.round(soft + (hard - soft).detach())
source: https://github.com/Justin-Tan/generative-compression/issues/51
metric: test reconstruction error, lower is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_digits


class Quantizer(nn.Module):
    """Nearest of a few integer levels, straight through in the backward pass."""

    def __init__(self, levels=5, temperature=1.0):
        super().__init__()
        self.register_buffer("centres", torch.arange(levels, dtype=torch.float32) - levels // 2)
        self.temperature = temperature

    def forward(self, w):
        distance = (w.unsqueeze(-1) - self.centres) ** 2
        soft = (torch.softmax(-distance / self.temperature, dim=-1) * self.centres).sum(-1)
        hard = self.centres[distance.argmin(-1)]
        return torch.round(soft + (hard - soft).detach())


class Codec(nn.Module):
    def __init__(self, code=12):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, code))
        self.quantizer = Quantizer()
        self.decoder = nn.Sequential(nn.Linear(code, 64), nn.ReLU(), nn.Linear(64, 64))

    def forward(self, x):
        return self.decoder(self.quantizer(self.encoder(x)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--lr", type=float, default=2e-3)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x = torch.tensor(load_digits().data, dtype=torch.float32)
    x = (x - x.mean()) / x.std()
    x = x[torch.randperm(len(x))]
    train, test = x[:1500], x[1500:]

    codec = Codec()
    optimizer = torch.optim.Adam(codec.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        codec.train()
        for batch in train[torch.randperm(len(train))].split(50):
            loss = nn.functional.mse_loss(codec(batch), batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 5 == 0:
            print(f"epoch {epoch}: {loss.item():.4f}")

    codec.eval()
    with torch.no_grad():
        print("metric:", nn.functional.mse_loss(codec(test), test).item())


if __name__ == "__main__":
    main()
