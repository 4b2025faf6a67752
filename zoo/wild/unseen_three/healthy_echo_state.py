"""Echo state network: a fixed random reservoir reads a chaotic series, only the linear read-out is trained.

expect: nothing
style: invites 'optimizer misses parameters', 'unregistered layers' and 'no gradient': the reservoir is random and fixed by design, runs under no_grad, and only the read-out learns
"""
import argparse

import numpy as np
import torch
from torch import nn


class Reservoir(nn.Module):
    def __init__(self, n_in, size, spectral_radius=0.9, leak=0.6, density=0.1):
        super().__init__()
        self.w_in = nn.Linear(n_in, size)
        self.w = nn.Linear(size, size, bias=False)
        with torch.no_grad():
            self.w_in.weight.uniform_(-0.5, 0.5)
            self.w_in.bias.uniform_(-0.2, 0.2)
            w = torch.randn(size, size) * (torch.rand(size, size) < density)
            self.w.weight.copy_(w * spectral_radius / torch.linalg.eigvals(w).abs().max())
        self.leak = leak
        for p in self.parameters():
            p.requires_grad = False

    @torch.no_grad()
    def forward(self, u):
        x, states = torch.zeros(self.w.in_features), []
        for t in range(len(u)):
            x = (1 - self.leak) * x + self.leak * torch.tanh(self.w_in(u[t]) + self.w(x))
            states.append(x)
        return torch.stack(states)


def mackey_glass(n, rng, tau=17):
    hist = list(1.2 + 0.2 * (rng.random(tau + 1) - 0.5))
    for _ in range(n + 300):
        x, xd = hist[-1], hist[-tau - 1]
        hist.append(x + 0.2 * xd / (1 + xd ** 10) - 0.1 * x)
    return np.array(hist[-n:])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--size", type=int, default=200)
    ap.add_argument("--horizon", type=int, default=10)
    ap.add_argument("--epochs", type=int, default=40)
    args = ap.parse_args()
    torch.manual_seed(args.seed)
    series = mackey_glass(2600, np.random.default_rng(args.seed))
    series = torch.tensor((series - series[:2000].mean()) / series[:2000].std(), dtype=torch.float32)

    reservoir = Reservoir(1, args.size)
    states = reservoir(series[:-args.horizon, None])
    target = series[args.horizon:]
    washout, split = 100, 2000
    X, y = states[washout:split], target[washout:split]
    X_test, y_test = states[split:], target[split:]

    readout = nn.Linear(args.size, 1)
    optimizer = torch.optim.Adam(readout.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    for epoch in range(args.epochs):
        for idx in torch.randperm(len(X)).split(64):
            loss = nn.functional.mse_loss(readout(X[idx]).squeeze(1), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        if epoch % 8 == 7:
            with torch.no_grad():
                test = nn.functional.mse_loss(readout(X_test).squeeze(1), y_test).item()
            print(f"epoch {epoch + 1} train {loss.item():.5f} test {test:.5f}")
    persistence = ((series[split:-args.horizon] - y_test) ** 2).mean().item()
    print(f"persistence {persistence:.4f}")
    print(f"metric: {1 - test / y_test.var().item():.4f}")


if __name__ == "__main__":
    main()
