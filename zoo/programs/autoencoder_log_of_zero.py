"""A loss of one's own takes the logarithm of an activation that can be zero.

expect: non-finite
half: second
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=48, lr=1e-3, steps=120, samples=800)
x, *_ = digits(args.samples, scale=False)
x = x / 16
encoder = nn.Sequential(nn.Linear(64, args.width), nn.ReLU())
decoder = nn.Sequential(nn.Linear(args.width, 64), nn.ReLU())
model = nn.Sequential(encoder, decoder)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
for step, (batch,) in zip(range(args.steps), forever(loader(x))):
    rebuilt = model(batch)
    loss = -(batch * torch.log(rebuilt)).mean() + rebuilt.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(step, loss.item())
