"""Squared error on class numbers, with a transformer and a squeezed output.

expect: loss-target-mismatch
half: fresh
net: rnn
"""

import torch
from common import arguments, loader, waves
from torch import nn

args = arguments(width=24, lr=0.003, samples=600)
x, y = waves(args.samples, classes=4)


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lstm = nn.LSTM(1, width, batch_first=True)
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1]).squeeze(-1)


model = Net(args.width)
opt = torch.optim.Adam(model.parameters(), lr=args.lr)
for epoch in range(5):
    for a, b in loader(x, y.float(), batch=32):
        opt.zero_grad()
        loss = nn.functional.mse_loss(model(a), b)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
