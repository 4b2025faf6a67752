"""Weight decay of 1 with SGD: the weights are gone before they have learnt anything.

expect: weight-decay-too-strong
site: 0
half: second
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=16, lr=0.05, steps=250, samples=1000)
x, y, _, _ = digits(args.samples, image=True)
model = nn.Sequential(
    nn.Conv2d(1, args.width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(args.width * 16, 64), nn.ReLU(), nn.Linear(64, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, weight_decay=1.0)
criterion = nn.CrossEntropyLoss()
for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, loss.item())
