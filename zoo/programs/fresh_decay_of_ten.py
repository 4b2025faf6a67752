"""AdamW with a weight decay of ten, in a regression.

expect: weight-decay-too-strong
half: fresh
net: regression
"""

import torch
from common import arguments, curve, loader
from torch import nn

args = arguments(width=48, lr=0.003, samples=900)
x, y = curve(args.samples)
model = nn.Sequential(
    nn.Linear(6, args.width), nn.SiLU(), nn.Linear(args.width, args.width), nn.SiLU(),
    nn.Linear(args.width, 1),
)  # fmt: skip
opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=10.0)
for epoch in range(8):
    for a, b in loader(x, y, batch=32):
        opt.zero_grad()
        loss = nn.functional.mse_loss(model(a), b)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
