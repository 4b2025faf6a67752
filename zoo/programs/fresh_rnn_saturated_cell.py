"""A recurrent cell by hand whose weights are so large that its tanh sits at its ends.

expect: saturated-activation
or: bad-init-scale, exploding-gradient, vanishing-gradient
half: fresh
net: rnn
"""

import torch
from common import arguments, loader, waves
from torch import nn

args = arguments(width=32, lr=0.01, samples=500)


class Cell(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inp = nn.Linear(1, width)
        self.rec = nn.Linear(width, width)
        self.act = nn.Tanh()
        self.out = nn.Linear(width, 3)
        nn.init.normal_(self.rec.weight, std=3.0)
        nn.init.normal_(self.inp.weight, std=10.0)

    def forward(self, x):
        h = torch.zeros(len(x), self.rec.in_features)
        for t in range(x.shape[1]):
            h = self.act(self.inp(x[:, t]) + self.rec(h))
        return self.out(h)


model = Cell(args.width)
opt = torch.optim.SGD(model.parameters(), lr=args.lr)
for epoch in range(6):
    for a, b in loader(*waves(args.samples), batch=32):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
    print(epoch, loss.item())
