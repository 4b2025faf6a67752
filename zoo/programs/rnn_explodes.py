"""A plain recurrent network over long sequences, with large recurrent weights and no clipping.

expect: exploding-gradient
or: learning-rate-too-high, non-finite, bad-init-scale
half: second
"""

import torch
from common import arguments, forever, loader, waves
from torch import nn

args = arguments(width=32, lr=0.01, steps=150, samples=500)


class Listener(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.rnn = nn.RNN(1, width, nonlinearity="relu", batch_first=True)
        self.head = nn.Linear(width, 3)
        with torch.no_grad():
            self.rnn.weight_hh_l0.mul_(3.0)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


model = Listener(args.width)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for step, (x, y) in zip(range(args.steps), forever(loader(*waves(args.samples, length=60)))):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(step, loss.item())
