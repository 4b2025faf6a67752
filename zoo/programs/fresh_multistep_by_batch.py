"""MultiStepLR with milestones in epochs, stepped after every batch.

expect: scheduler-collapse
half: fresh
net: mlp
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=32, samples=1000)
x, y, _, _ = digits(args.samples)
model = nn.Sequential(nn.Linear(64, args.width), nn.Sigmoid(), nn.Linear(args.width, 10))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.MultiStepLR(opt, milestones=[3, 6, 9, 12], gamma=0.1)
for epoch in range(8):
    for a, b in loader(x, y, batch=32):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        opt.step()
        scheduler.step()
    print(epoch, loss.item(), scheduler.get_last_lr())
