"""A generator and a discriminator of points on a ring.

expect: nothing
half: second
"""

import torch
from common import arguments
from torch import nn

args = arguments(width=48, lr=1e-3, steps=250)
G = nn.Sequential(nn.Linear(8, args.width), nn.ReLU(), nn.Linear(args.width, args.width), nn.ReLU(), nn.Linear(args.width, 2))
D = nn.Sequential(nn.Linear(2, args.width), nn.LeakyReLU(0.2), nn.Linear(args.width, args.width), nn.LeakyReLU(0.2), nn.Linear(args.width, 1))
g_opt = torch.optim.Adam(G.parameters(), lr=args.lr, betas=(0.5, 0.999))
d_opt = torch.optim.Adam(D.parameters(), lr=args.lr, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)
for step in range(args.steps):
    angle = 6.28 * torch.rand(64)
    real = torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(64, 2)
    with torch.no_grad():
        fake = G(torch.randn(64, 8))
    d_loss = bce(D(real), ones) + bce(D(fake), zeros)
    d_opt.zero_grad()
    d_loss.backward()
    d_opt.step()
    g_loss = bce(D(G(torch.randn(64, 8))), ones)
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()
    if step % 50 == 0:
        print(step, d_loss.item(), g_loss.item())
