"""GAN that should draw points on a ring; in the generator step the fake sample was detached like in the discriminator step, so the generator got no gradient and the discriminator won at once.

expect: no-gradient
line: d_fake2 = self.d(fake.detach())
source: https://github.com/nikhilsinghmus/image2reverb/issues/37
metric: mean distance of generated points from the ring, lower is better
"""
import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def mlp(i, o, h=48):
    return nn.Sequential(nn.Linear(i, h), nn.LeakyReLU(0.2), nn.Linear(h, h), nn.LeakyReLU(0.2), nn.Linear(h, o))


class RingGAN(nn.Module):
    def __init__(self, latent=4):
        super().__init__()
        self.latent = latent
        self.g = mlp(latent, 2)
        self.d = mlp(2, 1)

    def real(self, n):
        angle = torch.rand(n) * 2 * math.pi
        r = 2 + 0.05 * torch.randn(n)
        return torch.stack([r * angle.cos(), r * angle.sin()], 1)

    def training_step(self, n, optimizer_idx):
        fake = self.g(torch.randn(n, self.latent))
        if optimizer_idx == 0:
            d_fake2 = self.d(fake.detach())
            return F.mse_loss(d_fake2, torch.ones_like(d_fake2))
        d_real = self.d(self.real(n))
        d_fake = self.d(fake.detach())
        return (F.mse_loss(d_real, torch.ones_like(d_real)) + F.mse_loss(d_fake, torch.zeros_like(d_fake))) / 2


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--steps", type=int, default=700)
    a = p.parse_args()
    torch.manual_seed(a.seed)
    gan = RingGAN()
    optimizers = [
        torch.optim.Adam(gan.g.parameters(), lr=1e-3, betas=(0.5, 0.99)),
        torch.optim.Adam(gan.d.parameters(), lr=1e-3, betas=(0.5, 0.99)),
    ]
    for step in range(a.steps):
        losses = []
        for i, opt in enumerate(optimizers):
            gan.zero_grad()
            loss = gan.training_step(128, i)
            loss.backward()
            opt.step()
            losses.append(loss.item())
        if step % 100 == 99:
            print("step %d G %.3f D %.3f" % (step + 1, *losses))
    with torch.no_grad():
        r = gan.g(torch.randn(2000, gan.latent)).norm(dim=1)
    print("metric: %.4f" % (r - 2).abs().mean().item())


if __name__ == "__main__":
    main()
