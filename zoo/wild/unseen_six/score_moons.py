"""Denoising score matching at many noise levels on two moons, sampled by annealed Langevin steps.

expect: nothing
style: weighted regression on noise, log-spaced sigmas, sampling loop without gradients
metric: energy distance of samples to data, lower is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import make_moons

SIGMAS = torch.logspace(0, -1.6, 12)


class ScoreNet(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.level = nn.Embedding(len(SIGMAS), width)
        self.inp, self.mid, self.out = nn.Linear(2, width), nn.Linear(width, width), nn.Linear(width, 2)

    def forward(self, x, k):
        h = nn.functional.silu(self.inp(x) + self.level(k))
        h = h + nn.functional.silu(self.mid(h))
        return self.out(h) / SIGMAS[k][:, None]


def data(n, seed):
    x, _ = make_moons(n, noise=0.05, random_state=seed)
    return torch.tensor(x, dtype=torch.float32) - torch.tensor([0.5, 0.25])


@torch.no_grad()
def langevin(model, n):
    x = torch.randn(n, 2)
    for k, sigma in enumerate(SIGMAS):
        step = 0.1 * sigma**2
        for _ in range(20):
            x = x + step / 2 * model(x, torch.full((n,), k)) + step.sqrt() * torch.randn_like(x)
    return x


def energy(a, b):
    return (2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--iterations", type=int, default=1500)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    points = data(4000, args.seed)
    model = ScoreNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for it in range(args.iterations):
        x = points[torch.randint(len(points), (256,))]
        k = torch.randint(len(SIGMAS), (256,))
        noise = torch.randn_like(x)
        score = model(x + SIGMAS[k][:, None] * noise, k)
        loss = 0.5 * ((score * SIGMAS[k][:, None] + noise) ** 2).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if it % 250 == 0:
            print("iteration", it, "loss", round(loss.item(), 4))
    print("metric:", energy(langevin(model, 1000), data(1000, args.seed + 1)))
