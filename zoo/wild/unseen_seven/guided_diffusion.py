"""Class-conditional diffusion with v-prediction, a cosine schedule, dropped labels and guidance.

expect: nothing
style: loss that never goes to zero, an average of weights used for sampling, labels replaced by a null class
metric: share of samples nearest to the centre of their class, higher is better
"""

import argparse
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

CENTRES = torch.tensor([[math.cos(a), math.sin(a)] for a in torch.arange(6) * math.pi / 3]) * 1.4


class Net(nn.Module):
    def __init__(self, classes=6, width=96):
        super().__init__()
        self.label = nn.Embedding(classes + 1, width)
        self.time = nn.Sequential(nn.Linear(16, width), nn.SiLU(), nn.Linear(width, width))
        self.inp = nn.Linear(2, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width)
            )
            for _ in range(2)
        )
        self.out = nn.Linear(width, 2)
        nn.init.zeros_(self.out.weight)

    def forward(self, x, t, y):
        freqs = torch.exp(torch.linspace(0, 4, 8))
        angles = t[:, None] * freqs
        h = self.inp(x) + self.time(torch.cat([angles.sin(), angles.cos()], 1)) + self.label(y)
        for block in self.blocks:
            h = h + block(h)
        return self.out(h)


def alpha_sigma(t):
    return torch.cos(t * math.pi / 2)[:, None], torch.sin(t * math.pi / 2)[:, None]


@torch.no_grad()
def sample(net, y, steps=40, guidance=1.5):
    x = torch.randn(len(y), 2)
    null = torch.full_like(y, 6)
    times = torch.linspace(0.99, 0.0, steps + 1)
    for now, then in zip(times[:-1], times[1:]):
        t = now.expand(len(y))
        v = net(x, t, null) + guidance * (net(x, t, y) - net(x, t, null))
        a, s = alpha_sigma(t)
        x0, eps = a * x - s * v, s * x + a * v
        a, s = alpha_sigma(then.expand(len(y)))
        x = a * x0 + s * eps
    return x


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=1500)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    net = Net()
    averaged = copy.deepcopy(net).requires_grad_(False)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1.5e-3, weight_decay=0.01)
    for step in range(args.steps):
        y = torch.randint(6, (192,))
        x0, eps, t = (
            CENTRES[y] + 0.15 * torch.randn(192, 2),
            torch.randn(192, 2),
            torch.rand(192) * 0.99,
        )
        a, s = alpha_sigma(t)
        y = torch.where(torch.rand(192) < 0.15, torch.full_like(y, 6), y)
        loss = F.mse_loss(net(a * x0 + s * eps, t, y), a * eps - s * x0)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        with torch.no_grad():
            for p, q in zip(net.parameters(), averaged.parameters()):
                q.lerp_(p, 0.01)
        if step % 250 == 0:
            print(f"step {step} v_loss {loss.item():.4f}")
    y = torch.arange(6).repeat(100)
    x = sample(averaged, y)
    print("metric:", (torch.cdist(x, CENTRES).argmin(1) == y).float().mean().item())


if __name__ == "__main__":
    main()
