"""Denoising diffusion with fifty steps and the betas of a thousand: the last step is still half data, while sampling starts at pure noise.

expect: noise-schedule-too-short
line: self.betas = torch.linspace(1e-4, 0.02, T)
source: https://github.com/zoubohao/DenoisingDiffusionProbabilityModel-ddpm-/issues/14
metric: energy distance of samples to data, lower is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def data(n):
    """Four islands off the middle."""
    corner = torch.randint(0, 2, (n, 2)).float() * 2 - 1
    return corner * torch.tensor([1.6, 0.8]) + torch.tensor([0.9, 0.0]) + 0.1 * torch.randn(n, 2)


class Denoiser(nn.Module):
    def __init__(self, T, width=96):
        super().__init__()
        self.time = nn.Embedding(T, width)
        self.inp, self.mid, self.out = (
            nn.Linear(2, width),
            nn.Linear(width, width),
            nn.Linear(width, 2),
        )

    def forward(self, x, t):
        h = F.silu(self.inp(x) + self.time(t))
        h = h + F.silu(self.mid(h))
        return self.out(h)


class GaussianDiffusion(nn.Module):
    def __init__(self, model, T):
        super().__init__()
        self.model, self.T = model, T
        self.betas = torch.linspace(1e-4, 0.02, T)
        self.alphas = 1 - self.betas
        self.alphas_bar = torch.cumprod(self.alphas, 0)

    def forward(self, x_0):
        t = torch.randint(self.T, (len(x_0),))
        noise = torch.randn_like(x_0)
        bar = self.alphas_bar[t][:, None]
        return F.mse_loss(self.model(bar.sqrt() * x_0 + (1 - bar).sqrt() * noise, t), noise)

    @torch.no_grad()
    def sample(self, n):
        x = torch.randn(n, 2)
        for step in reversed(range(self.T)):
            t = torch.full((n,), step)
            eps = self.model(x, t)
            mean = (x - self.betas[step] / (1 - self.alphas_bar[step]).sqrt() * eps) / self.alphas[
                step
            ].sqrt()
            x = mean + (self.betas[step].sqrt() * torch.randn_like(x) if step else 0)
        return x


def energy(a, b):
    return (
        2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()
    ).item()


def main(args):
    torch.manual_seed(args.seed)
    diffusion = GaussianDiffusion(Denoiser(args.T), args.T)
    optimizer = torch.optim.AdamW(diffusion.parameters(), lr=args.lr, weight_decay=1e-4)
    for step in range(args.steps):
        loss = diffusion(data(256))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(diffusion.parameters(), 1.0)
        optimizer.step()
        if step % 300 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    print("metric:", energy(diffusion.sample(1500), data(1500)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--T", type=int, default=50)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--steps", type=int, default=2000)
    main(parser.parse_args())
