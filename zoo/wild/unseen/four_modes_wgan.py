"""Wasserstein GAN with gradient penalty on a mixture of four Gaussians.

expect: nothing
style: three critic steps per generator step, losses that are negative and drift without meaning, gradients of gradients, two optimizers
"""
import argparse
import math

import torch
from torch import autograd, nn, optim


def real_batch(n):
    k = torch.randint(0, 4, (n,)).float() * math.pi / 2
    centre = torch.stack([k.cos(), k.sin()], 1) * 2
    return centre + 0.3 * torch.randn(n, 2)


def block(i, o):
    return [nn.Linear(i, o), nn.LeakyReLU(0.2, inplace=True)]


class Generator(nn.Module):
    def __init__(self, z_dim=4, h=64):
        super().__init__()
        self.z_dim = z_dim
        self.model = nn.Sequential(*block(z_dim, h), *block(h, h), nn.Linear(h, 2))

    def forward(self, z):
        return self.model(z)


class Critic(nn.Module):
    def __init__(self, h=64):
        super().__init__()
        self.model = nn.Sequential(*block(2, h), *block(h, h), nn.Linear(h, 1))

    def forward(self, x):
        return self.model(x)


def gradient_penalty(critic, real, fake):
    alpha = torch.rand(real.size(0), 1)
    mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    scores = critic(mixed)
    grad = autograd.grad(scores, mixed, torch.ones_like(scores), create_graph=True)[0]
    return ((grad.norm(2, dim=1) - 1) ** 2).mean()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--n_critic", type=int, default=3)
    opt = ap.parse_args()
    torch.manual_seed(opt.seed)
    g, c = Generator(), Critic()
    opt_g = optim.Adam(g.parameters(), lr=2e-3, betas=(0.5, 0.9))
    opt_c = optim.Adam(c.parameters(), lr=2e-3, betas=(0.5, 0.9))
    for step in range(1, 261):
        for _ in range(opt.n_critic):
            real = real_batch(128)
            fake = g(torch.randn(128, g.z_dim)).detach()
            loss_c = c(fake).mean() - c(real).mean() + 2 * gradient_penalty(c, real, fake)
            opt_c.zero_grad()
            loss_c.backward()
            opt_c.step()
        loss_g = -c(g(torch.randn(128, g.z_dim))).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        if step % 65 == 0:
            print("step %d critic %.3f generator %.3f" % (step, loss_c.item(), loss_g.item()))
    with torch.no_grad():
        # real samples are 0.38 away from their centre on average, the untrained generator is 1.9
        x = g(torch.randn(2000, g.z_dim))
        k = torch.arange(4).float() * math.pi / 2
        centres = torch.stack([k.cos(), k.sin()], 1) * 2
        distance, nearest = torch.cdist(x, centres).min(1)
        modes = (torch.bincount(nearest, minlength=4) > 100).sum().item()
    print("modes reached", modes)
    print("metric: %.4f" % distance.mean().item())


if __name__ == "__main__":
    main()
