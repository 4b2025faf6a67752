"""The head is replaced after the optimizer was made: the new one never learns.

expect: optimizer-misses-parameters
site: fc
half: first
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=16, lr=1e-3, samples=900)


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(1, width, 3, padding=1)
        self.fc = nn.Linear(width * 16, 1000)

    def forward(self, x):
        return self.fc(nn.functional.max_pool2d(torch.relu(self.conv(x)), 2).flatten(1))


x, y, _, _ = digits(args.samples, image=True)
model = Net(args.width)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
model.fc = nn.Linear(args.width * 16, 10)
criterion = nn.CrossEntropyLoss()
for epoch in range(6):
    for a, b in loader(x, y):
        optimizer.zero_grad()
        loss = criterion(model(a), b)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
