"""An autoencoder with a narrow middle.

expect: nothing
half: first
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=64, lr=3e-3, samples=1000)
x, *_ = digits(args.samples)
model = nn.Sequential(
    nn.Linear(64, args.width), nn.GELU(), nn.Linear(args.width, 10), nn.Linear(10, args.width),
    nn.GELU(), nn.Linear(args.width, 64),
)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
for epoch in range(8):
    for (batch,) in loader(x):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(batch), batch)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
