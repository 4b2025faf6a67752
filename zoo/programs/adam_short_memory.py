"""Adam with eps=0 and a very short memory of squared gradients, on sparse features.

expect: adam-instability
or: learning-rate-too-high, oscillating-loss
half: first
net: mlp
"""

import torch
from common import arguments, forever, loader
from torch import nn

args = arguments(width=32, lr=0.01, steps=250, samples=900)
x = torch.randn(args.samples, 40) * (torch.rand(args.samples, 40) < 0.03) * 5
y = (x[:, :3].sum(1) > 0).long()
model = nn.Sequential(nn.Linear(40, args.width), nn.ReLU(), nn.Linear(args.width, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, betas=(0.9, 0.3), eps=1e-20)
criterion = nn.CrossEntropyLoss()

for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
