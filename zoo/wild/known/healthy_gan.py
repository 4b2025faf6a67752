"""A plain GAN on a ring of eight points: the losses go round in circles, as they should.

expect: nothing
style: two networks, two optimizers, detached fakes, label smoothing (looks like oscillating or stuck losses)
"""

import argparse
import math

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--n_steps", type=int, default=500)
parser.add_argument("--latent_dim", type=int, default=4)
opt = parser.parse_args()
torch.manual_seed(opt.seed)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(opt.latent_dim, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 2))

    def forward(self, z):
        return self.model(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))

    def forward(self, x):
        return self.model(x)


def ring(n):
    k = torch.randint(8, (n,)) * (2 * math.pi / 8)
    return 1.5 * torch.stack([k.cos(), k.sin()], 1) + 0.08 * torch.randn(n, 2)


adversarial_loss = nn.BCEWithLogitsLoss()
generator, discriminator = Generator(), Discriminator()
optimizer_G = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))


def distance(n=400):
    """Energy distance between samples and data."""
    with torch.no_grad():
        a, b = generator(torch.randn(n, opt.latent_dim)), ring(n)
    return (2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item()


before = distance()
for step in range(opt.n_steps):
    real = ring(64)
    valid, fake = torch.full((64, 1), 0.9), torch.zeros(64, 1)

    optimizer_G.zero_grad()
    gen = generator(torch.randn(64, opt.latent_dim))
    g_loss = adversarial_loss(discriminator(gen), torch.ones(64, 1))
    g_loss.backward()
    optimizer_G.step()

    optimizer_D.zero_grad()
    d_loss = (adversarial_loss(discriminator(real), valid) + adversarial_loss(discriminator(gen.detach()), fake)) / 2
    d_loss.backward()
    optimizer_D.step()
    if step % 100 == 0:
        print("[Step %d] [D loss: %f] [G loss: %f]" % (step, d_loss.item(), g_loss.item()))
print("metric: %.4f (started at %.4f)" % (distance(), before))
