"""Stochastic weight averaging: `update_bn` passes the data through in training mode.

expect: nothing
half: first
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=48, lr=0.05, samples=900)
x, y, test_x, test_y = digits(args.samples)
model = nn.Sequential(
    nn.Linear(64, args.width), nn.BatchNorm1d(args.width), nn.ReLU(), nn.Linear(args.width, 10)
)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
averaged = torch.optim.swa_utils.AveragedModel(model)
criterion = nn.CrossEntropyLoss()
train = loader(x, y)
for epoch in range(6):
    model.train()
    for a, b in train:
        optimizer.zero_grad()
        loss = criterion(model(a), b)
        loss.backward()
        optimizer.step()
    if epoch >= 2:
        averaged.update_parameters(model)
torch.optim.swa_utils.update_bn(train, averaged)
averaged.eval()
with torch.no_grad():
    print("test", criterion(averaged(test_x), test_y).item())
