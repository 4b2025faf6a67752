"""A regression whose rate is a millionth.

expect: learning-rate-too-low
half: fresh
net: regression
"""

import torch
from common import arguments, curve, loader
from torch import nn

args = arguments(width=64, samples=900)
x, y = curve(args.samples)
net = nn.Sequential(nn.Linear(6, args.width), nn.GELU(), nn.Linear(args.width, 1))
sgd = torch.optim.SGD(net.parameters(), lr=1e-6, momentum=0.9, nesterov=True)
for epoch in range(7):
    total = 0
    for a, b in loader(x, y, batch=32):
        sgd.zero_grad()
        loss = nn.functional.huber_loss(net(a), b)
        loss.backward()
        sgd.step()
        total += loss.item()
    print(epoch, total)
