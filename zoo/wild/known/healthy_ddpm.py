"""A denoising diffusion model for a spiral in the plane; the loss soon stays where it is and the samples still get better.

expect: nothing
style: DDPM with EMA weights and sinusoidal time embedding (looks like a loss that does not fall)
"""

import argparse
import copy
import math

import torch
from torch import nn

T = 50


class Denoiser(nn.Module):
    def __init__(self, hidden=96):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, hidden), nn.SiLU())
        self.inp = nn.Linear(2, hidden)
        self.mid = nn.Sequential(nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU())
        self.out = nn.Linear(hidden, 2)

    def forward(self, x, t):
        freq = torch.exp(-math.log(1000) * torch.arange(8) / 8)
        angle = t[:, None].float() * freq
        return self.out(self.mid(self.inp(x) + self.time(torch.cat([angle.sin(), angle.cos()], 1))))


def spiral(n):
    r = torch.rand(n).sqrt() * 3 * math.pi
    return torch.stack([r * r.cos(), r * r.sin()], 1) / 5 + 0.03 * torch.randn(n, 2)


def sample(model, n, betas, alphas_bar):
    x = torch.randn(n, 2)
    for t in reversed(range(T)):
        eps = model(x, torch.full((n,), t))
        x = (x - betas[t] / (1 - alphas_bar[t]).sqrt() * eps) / (1 - betas[t]).sqrt()
        if t > 0:
            x = x + betas[t].sqrt() * torch.randn_like(x)
    return x


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=700)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    betas = torch.linspace(1e-3, 0.15, T)
    alphas_bar = torch.cumprod(1 - betas, 0)
    model = Denoiser()
    ema = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(args.steps):
        x0, t, noise = spiral(128), torch.randint(T, (128,)), torch.randn(128, 2)
        a = alphas_bar[t][:, None]
        loss = nn.functional.mse_loss(model(a.sqrt() * x0 + (1 - a).sqrt() * noise, t), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for p, q in zip(ema.parameters(), model.parameters()):
            p.lerp_(q.detach(), 0.01)
        if step % 100 == 0:
            print(f"step {step}: {loss.item():.4f}")
    with torch.no_grad():
        made, real = sample(ema, 500, betas, alphas_bar), spiral(500)
        noise = torch.randn(500, 2)
        energy = lambda a, b: (2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item()  # noqa: E731
        print(f"metric: {energy(made, real):.4f} (pure noise {energy(noise, real):.4f})")


if __name__ == "__main__":
    main()
