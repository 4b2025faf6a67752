"""Gradients of a recurrent network are clipped to a norm of 0.0001.

expect: clipping-too-tight
or: learning-rate-too-low
half: second
"""

import torch
from common import arguments, forever, loader, waves
from torch import nn

args = arguments(width=32, lr=0.05, steps=200, samples=600)


class Listener(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.rnn = nn.GRU(1, width, batch_first=True)
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


model = Listener(args.width)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
criterion = nn.CrossEntropyLoss()
for step, (x, y) in zip(range(args.steps), forever(loader(*waves(args.samples)))):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm=1e-4)
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
