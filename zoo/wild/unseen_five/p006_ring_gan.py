"""A GAN draws eight blobs on a ring: two optimizers, two losses that never settle, samples detached for the critic.

expect: nothing
style: notebook turned script, BCE with logits, label smoothing on one side
metric: share of samples near a blob times share of blobs found, higher is better
"""

import argparse
import math

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)

centers = torch.tensor([[math.cos(k * math.pi / 4), math.sin(k * math.pi / 4)] for k in range(8)]) * 2


def real(n):
    return centers[torch.randint(8, (n,))] + 0.15 * torch.randn(n, 2)


G = nn.Sequential(nn.Linear(8, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 2))
D = nn.Sequential(nn.Linear(2, 96), nn.LeakyReLU(0.2), nn.Linear(96, 96), nn.LeakyReLU(0.2), nn.Linear(96, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(128, 1), torch.zeros(128, 1)

for it in range(1500):
    x = real(128)
    fake = G(torch.randn(128, 8))
    # discriminator; noise on its inputs fades out
    sigma = 0.3 * max(0.0, 1 - it / 1000)
    d_loss = bce(D(x + sigma * torch.randn_like(x)), 0.9 * ones) + bce(D(fake.detach() + sigma * torch.randn_like(x)), zeros)
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()
    # generator
    g_loss = bce(D(fake + sigma * torch.randn_like(x)), ones)
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
    if it % 250 == 0:
        print(f"[{it}] D {d_loss.item():.3f} G {g_loss.item():.3f}")

with torch.no_grad():
    d = torch.cdist(G(torch.randn(2000, 8)), centers)
    near = d.min(1).values < 0.6
    found = len(set(d.argmin(1)[near].tolist())) / 8
    print("metric:", near.float().mean().item() * found)
