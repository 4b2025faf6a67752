"""An Elman network over long sequences, large recurrent weights, SGD without clipping.

expect: exploding-gradient
or: learning-rate-too-high, bad-init-scale, non-finite
half: fresh
net: rnn
"""

import torch
from common import arguments, loader, waves
from torch import nn

args = arguments(width=32, samples=500)
x, y = waves(args.samples, length=40)


class Cell(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inp = nn.Linear(1, width)
        self.rec = nn.Linear(width, width)
        self.out = nn.Linear(width, 3)
        nn.init.normal_(self.rec.weight, std=1.6 / width**0.5)

    def forward(self, x):
        h = torch.zeros(len(x), self.rec.in_features)
        for t in range(x.shape[1]):
            h = torch.relu(self.inp(x[:, t]) + self.rec(h))
        return self.out(h)


model = Cell(args.width)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(5):
    for a, b in loader(x, y, batch=32):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
