"""A relativistic average GAN for a spiral: both players see both batches, and spectral norm holds the critic.

expect: nothing
style: spectral norm, two time scales, gradients of one player switched off while the other one moves
metric: energy distance of samples to data, lower is better
"""

import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import spectral_norm

seed = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else 0
torch.manual_seed(seed)


def spiral(n):
    t = 0.5 + 2.5 * torch.rand(n)
    return torch.stack([t * torch.cos(2 * t), t * torch.sin(2 * t)], 1) / 2 + 0.04 * torch.randn(
        n, 2
    )


G = nn.Sequential(
    nn.Linear(6, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 2)
)
D = nn.Sequential(
    spectral_norm(nn.Linear(2, 96)),
    nn.LeakyReLU(0.2),
    spectral_norm(nn.Linear(96, 96)),
    nn.LeakyReLU(0.2),
    nn.Linear(96, 1),
)
opt_g = torch.optim.Adam(G.parameters(), lr=5e-4, betas=(0.0, 0.99))
opt_d = torch.optim.Adam(D.parameters(), lr=1.5e-3, betas=(0.0, 0.99))


def requires_grad(net, flag):
    for p in net.parameters():
        p.requires_grad_(flag)


def relativistic(a, b):
    """`a` should look more real than the average `b`."""
    ones = torch.ones_like(a)
    return (
        F.binary_cross_entropy_with_logits(a - b.mean(), ones)
        + F.binary_cross_entropy_with_logits(b - a.mean(), 1 - ones)
    ) / 2


for it in range(1600):
    real = spiral(128)
    requires_grad(D, True)
    with torch.no_grad():
        fake = G(torch.randn(128, 6))
    loss_d = relativistic(D(real), D(fake))
    opt_d.zero_grad(set_to_none=True)
    loss_d.backward()
    opt_d.step()

    requires_grad(D, False)
    fake = G(torch.randn(128, 6))
    loss_g = relativistic(D(fake), D(real))
    opt_g.zero_grad(set_to_none=True)
    loss_g.backward()
    opt_g.step()
    if it % 200 == 0:
        print(f"it {it:5d} | loss D {loss_d.item():.3f} | loss G {loss_g.item():.3f}")

with torch.no_grad():
    a, b = G(torch.randn(1500, 6)), spiral(1500)
    print(
        "metric:",
        (2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item(),
    )
