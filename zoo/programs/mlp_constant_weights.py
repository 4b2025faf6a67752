"""All weights start at 0.1.

expect: symmetric-init
site: 0
half: second
"""

import torch
from common import arguments, blobs, forever, loader
from torch import nn

args = arguments(width=32, lr=0.02, steps=150, samples=900)
model = nn.Sequential(
    nn.Linear(10, args.width), nn.Tanh(), nn.Linear(args.width, args.width), nn.Tanh(),
    nn.Linear(args.width, 4),
)
for module in model:
    if isinstance(module, nn.Linear):
        nn.init.constant_(module.weight, 0.1)
        nn.init.zeros_(module.bias)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
criterion = nn.CrossEntropyLoss()
for step, (x, y) in zip(range(args.steps), forever(loader(*blobs(args.samples)))):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(step, loss.item())
