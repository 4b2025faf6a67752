"""A Wasserstein critic with a gradient penalty: its loss is rightly negative.

expect: nothing
half: second
"""

import torch
from common import arguments
from torch import nn

args = arguments(width=48, lr=1e-3, steps=150)
G = nn.Sequential(nn.Linear(8, args.width), nn.ReLU(), nn.Linear(args.width, 2))
C = nn.Sequential(nn.Linear(2, args.width), nn.LeakyReLU(0.2), nn.Linear(args.width, 1))
g_opt = torch.optim.Adam(G.parameters(), lr=args.lr, betas=(0.5, 0.9))
c_opt = torch.optim.Adam(C.parameters(), lr=args.lr, betas=(0.5, 0.9))
for step in range(args.steps):
    for _ in range(3):
        real = torch.randn(64, 2) * 0.3 + torch.tensor([2.0, 0.0])
        fake = G(torch.randn(64, 8)).detach()
        mix = torch.rand(64, 1)
        between = (mix * real + (1 - mix) * fake).requires_grad_(True)
        (grad,) = torch.autograd.grad(C(between).sum(), between, create_graph=True)
        penalty = 10 * ((grad.norm(dim=1) - 1) ** 2).mean()
        c_loss = C(fake).mean() - C(real).mean() + penalty
        c_opt.zero_grad()
        c_loss.backward()
        c_opt.step()
    g_loss = -C(G(torch.randn(64, 8))).mean()
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()
    if step % 30 == 0:
        print(step, c_loss.item(), g_loss.item())
