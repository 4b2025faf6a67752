"""The adding problem with a GRU cell by hand: gradients truncated every few steps, layer norm inside, a curriculum of lengths.

expect: nothing
style: nn.Parameter matrices, a loop over time, state detached between chunks, loss at the last step only
metric: test error (0.167 for a constant), lower is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class NormGRUCell(nn.Module):
    def __init__(self, n_in, n):
        super().__init__()
        self.x2g, self.h2g = nn.Linear(n_in, 3 * n), nn.Linear(n, 3 * n, bias=False)
        self.norm = nn.LayerNorm(n)
        for block in self.h2g.weight.data.chunk(3):
            nn.init.orthogonal_(block)
        with torch.no_grad():
            self.x2g.bias[:n] = 1.5  # keep, at first

    def forward(self, x, h):
        a, b = self.x2g(x).chunk(3, -1), self.h2g(h).chunk(3, -1)
        keep, reset = torch.sigmoid(a[0] + b[0]), torch.sigmoid(a[1] + b[1])
        new = torch.tanh(self.norm(a[2] + reset * b[2]))
        return keep * h + (1 - keep) * new


class Adder(nn.Module):
    def __init__(self, n=48):
        super().__init__()
        self.cell, self.out, self.n = NormGRUCell(2, n), nn.Linear(n, 1), n

    def forward(self, x, truncate=None):
        h = x.new_zeros(x.size(0), self.n)
        for t in range(x.size(1)):
            if truncate and t and t % truncate == 0:
                h = h.detach()
            h = self.cell(x[:, t], h)
        return self.out(h).squeeze(1)


def adding(n, length):
    x = torch.rand(n, length, 2)
    x[..., 1] = 0
    first, second = torch.randint(0, length // 2, (n,)), torch.randint(length // 2, length, (n,))
    rows = torch.arange(n)
    x[rows, first, 1] = x[rows, second, 1] = 1
    return x, x[rows, first, 0] + x[rows, second, 0]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=900)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = Adder()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
    for step in range(args.steps):
        length = min(20, 6 + 2 * (step // 80))
        x, y = adding(64, length)
        loss = F.mse_loss(model(x, truncate=20 if step < 600 else None), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.5)
        optimizer.step()
        if step % 150 == 0:
            print(f"step {step} length {length} mse {loss.item():.4f}")
    x, y = adding(1000, 20)
    with torch.no_grad():
        print("metric:", F.mse_loss(model(x), y).item())
