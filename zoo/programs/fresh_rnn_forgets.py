"""Small recurrent weights: nothing of the first input reaches the end of a long sequence.

expect: vanishing-gradient
or: not-learning, class-collapse, bad-init-scale
half: fresh
net: rnn
"""

import torch
from common import arguments
from torch import nn

args = arguments(width=24, lr=0.02, steps=120)


class Memory(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.cells = nn.ModuleList(nn.Linear(width, width) for _ in range(16))
        self.enter = nn.Linear(4, width)
        self.out = nn.Linear(width, 4)
        for cell in self.cells:
            nn.init.normal_(cell.weight, std=0.2 / width**0.5)

    def forward(self, x):
        h = torch.tanh(self.enter(x))
        for cell in self.cells:
            h = torch.tanh(cell(h))
        return self.out(h)


model = Memory(args.width)
opt = torch.optim.SGD(model.parameters(), lr=args.lr)
for step in range(args.steps):
    y = torch.randint(4, (32,))
    x = nn.functional.one_hot(y, 4).float()
    loss = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 30 == 0:
        print(step, loss.item())
