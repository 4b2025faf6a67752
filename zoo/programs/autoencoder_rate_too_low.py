"""An autoencoder with SGD at 1e-7.

expect: learning-rate-too-low
half: second
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=64, samples=1000)
x, *_ = digits(args.samples)
model = nn.Sequential(
    nn.Linear(64, args.width), nn.ReLU(), nn.Linear(args.width, 12), nn.ReLU(),
    nn.Linear(12, args.width), nn.ReLU(), nn.Linear(args.width, 64),
)
opt = torch.optim.SGD(model.parameters(), lr=1e-7, momentum=0.9)
for epoch in range(8):
    for (batch,) in loader(x):
        opt.zero_grad()
        loss = nn.functional.mse_loss(model(batch), batch)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
