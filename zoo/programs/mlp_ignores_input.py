"""A mask that is zero everywhere is multiplied into the input.

expect: input-ignored
or: input-collapsed
half: first
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=48, lr=2e-3, steps=150, samples=900)


class Masked(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("mask", torch.zeros(64))
        self.fc1 = nn.Linear(64, width)
        self.fc2 = nn.Linear(width, 10)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x * self.mask)))


x, y, _, _ = digits(args.samples)
model = Masked(args.width)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()

for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
