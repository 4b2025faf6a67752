"""Meta-learning where only the head adapts: features are shared, inner steps differentiate through, rates of the inner steps are learnt.

expect: nothing
style: higher-order gradients, new tasks at every step, a loss that stays noisy
metric: error after adaptation to new tasks, lower is better
"""

import argparse
import math

import torch
import torch.nn as nn


def tasks(n, shots=10):
    amplitude, phase = 0.5 + 2 * torch.rand(n, 1, 1), math.pi * torch.rand(n, 1, 1)
    x = 10 * torch.rand(n, 2 * shots, 1) - 5
    y = amplitude * torch.sin(x + phase)
    return x[:, :shots], y[:, :shots], x[:, shots:], y[:, shots:]


class ANIL(nn.Module):
    def __init__(self, width=48, steps=3):
        super().__init__()
        self.features = nn.Sequential(
            nn.Linear(1, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.Tanh(),
        )
        self.w, self.b = nn.Parameter(0.1 * torch.randn(width, 1)), nn.Parameter(torch.zeros(1))
        self.rates = nn.Parameter(torch.full((steps,), 0.05))

    def adapt(self, x, y):
        h = self.features(x / 5)
        n = len(x)
        w, b = self.w.expand(n, -1, -1), self.b.expand(n, 1, 1)
        for rate in self.rates:
            loss = ((h @ w + b - y) ** 2).mean((1, 2)).sum()
            gw, gb = torch.autograd.grad(loss, (w, b), create_graph=True)
            w, b = w - rate * gw, b - rate * gb
        return w, b

    def forward(self, x, y, xq):
        w, b = self.adapt(x, y)
        return self.features(xq / 5) @ w + b


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--meta-steps", type=int, default=1500)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = ANIL()
    meta = torch.optim.Adam(
        [
            {"params": [p for n, p in model.named_parameters() if n != "rates"]},
            {"params": [model.rates], "lr": 1e-3},
        ],
        lr=2e-3,
    )
    for step in range(args.meta_steps):
        x, y, xq, yq = tasks(24)
        loss = ((model(x, y, xq) - yq) ** 2).mean()
        meta.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        meta.step()
        if step % 250 == 0:
            print(
                f"meta step {step} query mse {loss.item():.3f} rates {[round(r, 3) for r in model.rates.tolist()]}"
            )
    x, y, xq, yq = tasks(500)
    print("metric:", ((model(x, y, xq) - yq) ** 2).mean().item())


if __name__ == "__main__":
    main()
