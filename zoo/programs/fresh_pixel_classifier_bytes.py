"""Images as they come from a camera (0 to 255), a tanh network, plain SGD.

expect: input-not-normalized
or: saturated-activation
half: fresh
net: mlp
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=64, lr=0.01, samples=900)
x, y, _, _ = digits(args.samples, scale=False)
x = (x * 15.9).round()
model = nn.Sequential(
    nn.Linear(64, args.width), nn.Tanh(), nn.Linear(args.width, args.width), nn.Tanh(),
    nn.Linear(args.width, 10),
)  # fmt: skip
opt = torch.optim.SGD(model.parameters(), lr=args.lr)
for epoch in range(6):
    for a, b in loader(x, y, batch=32):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
