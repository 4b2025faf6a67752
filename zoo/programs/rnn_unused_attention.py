"""An attention layer was built and never called.

expect: unused-module
site: attention
half: second
"""

import torch
from common import arguments, forever, loader, waves
from torch import nn

args = arguments(width=32, lr=3e-3, steps=200, samples=600)


class Listener(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.rnn = nn.GRU(1, width, batch_first=True)
        self.attention = nn.Linear(width, 1)
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        return self.head(self.rnn(x)[0].mean(1))


model = Listener(args.width)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for step, (x, y) in zip(range(args.steps), forever(loader(*waves(args.samples)))):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
