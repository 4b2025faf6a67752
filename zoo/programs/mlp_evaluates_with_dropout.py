"""A perceptron with dropout is evaluated without eval().

expect: train-mode-evaluation
site: 2
half: second
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=96, lr=1e-3, samples=900)
x, y, test_x, test_y = digits(args.samples)
model = nn.Sequential(
    nn.Linear(64, args.width), nn.ReLU(), nn.Dropout(0.5),
    nn.Linear(args.width, args.width), nn.ReLU(), nn.Dropout(0.5), nn.Linear(args.width, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
for epoch in range(6):
    for a, b in loader(x, y):
        optimizer.zero_grad()
        loss = criterion(model(a), b)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        losses = [criterion(model(a), b).item() for a, b in loader(test_x, test_y, batch=50)]
    print(epoch, sum(losses) / len(losses))
