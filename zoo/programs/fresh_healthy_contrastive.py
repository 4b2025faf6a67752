"""Two noisy views of each sample; the loss is written out (InfoNCE).

expect: nothing
half: fresh
net: mlp
"""

import torch
import torch.nn.functional as F
from common import arguments, digits, loader
from torch import nn

args = arguments(width=64, lr=2e-3, samples=900)
x, _, _, _ = digits(args.samples)
encoder = nn.Sequential(nn.Linear(64, args.width), nn.BatchNorm1d(args.width), nn.ReLU(), nn.Linear(args.width, 32))
opt = torch.optim.Adam(encoder.parameters(), lr=args.lr, weight_decay=1e-6)
for epoch in range(8):
    for (a,) in loader(x, batch=64, drop_last=True):
        one = F.normalize(encoder(a + 0.4 * torch.randn_like(a)), dim=1)
        two = F.normalize(encoder(a + 0.4 * torch.randn_like(a)), dim=1)
        logits = one @ two.T / 0.2
        target = torch.arange(len(a))
        loss = (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
