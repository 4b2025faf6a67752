"""A recurrent network is fed with prices around 20,000.

expect: input-not-normalized
or: input-ignored
half: first
"""

import torch
from common import arguments, forever, loader, waves
from torch import nn

args = arguments(width=24, lr=2e-3, steps=150, samples=600)


class Listener(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.rnn = nn.RNN(1, width, batch_first=True)
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


x, y = waves(args.samples)
x = 20_000 + 900 * x
model = Listener(args.width)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()

for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
