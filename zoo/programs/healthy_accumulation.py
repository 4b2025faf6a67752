"""Gradient accumulation done right, with clipping.

expect: nothing
half: second
"""

import torch
from common import arguments, loader, waves
from torch import nn

args = arguments(width=32, lr=5e-3, samples=800)


class Listener(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.rnn = nn.LSTM(1, width, batch_first=True)
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        return self.head(self.rnn(x)[0].mean(1))


model = Listener(args.width)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
x, y = waves(args.samples)
for epoch in range(10):
    for i, (a, b) in enumerate(loader(x, y, batch=8), 1):
        loss = criterion(model(a), b) / 4
        loss.backward()
        if i % 4 == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, loss.item() * 4)
