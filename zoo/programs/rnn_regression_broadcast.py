"""Predictions (N, 1) against targets (N,) in `nn.MSELoss`.

expect: loss-broadcast
half: first
"""

import warnings

import torch
from common import arguments, forever, loader, waves
from torch import nn

warnings.simplefilter("ignore")
args = arguments(width=24, lr=2e-3, steps=150, samples=600)


class Listener(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.rnn = nn.GRU(1, width, batch_first=True)
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


x, y = waves(args.samples)
y = y.float() + 0.1 * torch.randn(len(y))
model = Listener(args.width)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.MSELoss()

for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
