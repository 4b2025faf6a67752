"""A recurrent network learns the frequency of waves; the step was forgotten.

expect: missing-step
half: second
"""

import torch
from common import arguments, forever, loader, waves
from torch import nn

args = arguments(width=32, lr=1e-3, steps=120, samples=600)


class Listener(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.rnn = nn.GRU(1, width, batch_first=True)
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        _, h = self.rnn(x)
        return self.head(h[-1])


model = Listener(args.width)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for step, (x, y) in zip(range(args.steps), forever(loader(*waves(args.samples)))):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    if step % 20 == 0:
        print(step, loss.item())
