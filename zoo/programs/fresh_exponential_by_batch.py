"""ExponentialLR with a factor meant for epochs, stepped after every batch.

expect: scheduler-collapse
half: fresh
net: cnn
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=12, samples=900)
x, y, _, _ = digits(args.samples, image=True)
model = nn.Sequential(
    nn.Conv2d(1, args.width, 3), nn.ReLU(), nn.Flatten(), nn.Linear(36 * args.width, 10)
)
opt = torch.optim.SGD(model.parameters(), lr=0.02)
scheduler = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.8)
for epoch in range(6):
    for a, b in loader(x, y, batch=32):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        opt.step()
        scheduler.step()
    print(epoch, loss.item())
