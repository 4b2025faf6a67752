"""A shared trunk with a classifier and a regressor; two losses, added with a weight.

expect: nothing
half: fresh
net: mlp
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=64, lr=2e-3, samples=900)
x, y, _, _ = digits(args.samples)
ink = x.mean(1)


class TwoHeads(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.digit = nn.Linear(width, 10)
        self.ink = nn.Linear(width, 1)

    def forward(self, x):
        h = self.trunk(x)
        return {"digit": self.digit(h), "ink": self.ink(h)[:, 0]}


model = TwoHeads(args.width)
opt = torch.optim.Adam(
    [{"params": model.trunk.parameters()}, {"params": [*model.digit.parameters(), *model.ink.parameters()], "lr": 2 * args.lr}],
    lr=args.lr,
)
for epoch in range(6):
    for a, b, c in loader(x, y, ink, batch=32):
        out = model(a)
        loss = nn.functional.cross_entropy(out["digit"], b) + 0.5 * nn.functional.mse_loss(out["ink"], c)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
