"""A forecaster with a loss by hand: (N, 1) against (N,).

expect: loss-broadcast
half: fresh
net: cnn
"""

import torch
from common import arguments, loader, waves
from torch import nn

args = arguments(width=24, lr=0.003, samples=600)
series, _ = waves(args.samples)
x, y = series[:, :-1], series[:, -1, 0]


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, args.width, 5, padding=2)
        self.head = nn.Linear(args.width, 1)

    def forward(self, x):
        return self.head(torch.relu(self.conv(x.transpose(1, 2))).amax(2))


model = Forecaster()
opt = torch.optim.RMSprop(model.parameters(), lr=args.lr)
for epoch in range(5):
    for a, b in loader(x, y, batch=32):
        opt.zero_grad()
        loss = ((model(a) - b) ** 2).mean()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
