"""Inputs are normalised per sample; some samples are constant, and 0 / 0 is NaN.

expect: non-finite
half: first
"""

import torch
from common import arguments, blobs, forever, loader
from torch import nn

args = arguments(width=32, lr=1e-3, steps=120, samples=800)
x, y = blobs(args.samples)
x[::97] = 1.0


class Normalised(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc1 = nn.Linear(10, width)
        self.fc2 = nn.Linear(width, 4)

    def forward(self, x):
        x = (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True)
        return self.fc2(torch.relu(self.fc1(x)))


model = Normalised(args.width)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()

for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
