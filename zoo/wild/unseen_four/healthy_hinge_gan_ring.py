"""GAN on a ring of eight Gaussians: hinge loss, spectral norm, two time scales, EMA of the generator.

expect: nothing
style: two optimizers with different rates, detach in the critic's step, EMA copy never optimised on purpose
"""
import copy
import math
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import spectral_norm

SEED = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else 0
torch.manual_seed(SEED)
Z, BATCH, STEPS = 8, 192, 1200

angles = torch.arange(8) * (2 * math.pi / 8)
centres = torch.stack([angles.cos(), angles.sin()], 1) * 1.5


def real_batch(n):
    return centres[torch.randint(0, 8, (n,))] + 0.08 * torch.randn(n, 2)


G = nn.Sequential(nn.Linear(Z, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
D = nn.Sequential(
    nn.Linear(2, 96), nn.LeakyReLU(0.2),
    spectral_norm(nn.Linear(96, 96)), nn.LeakyReLU(0.2),
    nn.Linear(96, 1),
)
G_ema = copy.deepcopy(G).requires_grad_(False)
opt_g = torch.optim.Adam(G.parameters(), lr=1.5e-3, betas=(0.0, 0.9))
opt_d = torch.optim.Adam(D.parameters(), lr=3e-3, betas=(0.0, 0.9))


@torch.no_grad()
def update_ema(target, source, decay):
    for p, q in zip(target.parameters(), source.parameters()):
        p.lerp_(q, 1 - decay)


@torch.no_grad()
def quality(gen):
    x = gen(torch.randn(4000, Z))
    dist, which = torch.cdist(x, centres).min(1)
    good = dist < 0.4
    counts = torch.bincount(which[good], minlength=8).float() / len(x)
    return good.float().mean().item(), (counts > 0.04).sum().item()


for step in range(STEPS):
    # critic
    x = real_batch(BATCH)
    with torch.no_grad():
        fake = G(torch.randn(BATCH, Z))
    d_loss = F.relu(1 - D(x)).mean() + F.relu(1 + D(fake)).mean()
    opt_d.zero_grad(set_to_none=True)
    d_loss.backward()
    opt_d.step()

    # generator
    D.requires_grad_(False)
    g_loss = -D(G(torch.randn(BATCH, Z))).mean()
    opt_g.zero_grad(set_to_none=True)
    g_loss.backward()
    opt_g.step()
    D.requires_grad_(True)
    update_ema(G_ema, G, 0.99)
    if step % 200 == 0:
        share, modes = quality(G_ema)
        print(f"step {step:5d} d {d_loss.item():.3f} g {g_loss.item():.3f} near a mode {share:.2f} modes {modes}")

share, modes = quality(G_ema)
print(f"near a mode {share:.3f}, modes {modes}")
print(f"metric: {share * modes / 8:.4f}")
