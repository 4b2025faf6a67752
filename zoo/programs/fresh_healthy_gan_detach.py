"""A GAN as most are written: the generator's output is detached for the critic's step.

expect: nothing
half: fresh
net: mlp
"""

import torch
from common import arguments
from torch import nn

args = arguments(width=48, lr=5e-4, steps=250)
netG = nn.Sequential(nn.Linear(4, args.width), nn.BatchNorm1d(args.width), nn.ReLU(), nn.Linear(args.width, 2), nn.Tanh())
netD = nn.Sequential(nn.Linear(2, args.width), nn.LeakyReLU(0.2), nn.Dropout(0.2), nn.Linear(args.width, 1), nn.Sigmoid())
optimizerD = torch.optim.Adam(netD.parameters(), lr=args.lr, betas=(0.5, 0.999))
optimizerG = torch.optim.Adam(netG.parameters(), lr=args.lr, betas=(0.5, 0.999))
criterion = nn.BCELoss()
for i in range(args.steps):
    real = torch.tanh(0.5 * torch.randn(64, 2) + torch.tensor([0.5, -0.5]))
    netD.zero_grad()
    errD_real = criterion(netD(real).view(-1), torch.full((64,), 0.9))
    errD_real.backward()
    fake = netG(torch.randn(64, 4))
    errD_fake = criterion(netD(fake.detach()).view(-1), torch.zeros(64))
    errD_fake.backward()
    optimizerD.step()
    netG.zero_grad()
    errG = criterion(netD(fake).view(-1), torch.ones(64))
    errG.backward()
    optimizerG.step()
    if i % 50 == 0:
        print(i, errD_real.item() + errD_fake.item(), errG.item())
