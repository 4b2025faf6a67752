"""A network that can do the job nearly, tuned further at a tiny learning rate.

expect: nothing
half: second
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=96, samples=1000)
x, y, _, _ = digits(args.samples)
w = torch.linalg.lstsq(torch.cat([x, torch.ones(len(x), 1)], 1), nn.functional.one_hot(y, 10) * 6.0).solution
model = nn.Linear(64, 10)
with torch.no_grad():
    model.weight.copy_(w[:-1].T)
    model.bias.copy_(w[-1])
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
criterion = nn.CrossEntropyLoss()
for epoch in range(10):
    total = 0.0
    for a, b in loader(x, y):
        optimizer.zero_grad()
        loss = criterion(model(a), b)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, total)
