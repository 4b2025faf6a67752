"""The features are computed under `no_grad` inside the forward, by accident.

expect: no-gradient
site: features
half: first
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=16, lr=1e-3, samples=900)


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
        )
        self.head = nn.Linear(width * 16, 10)

    def forward(self, x):
        with torch.no_grad():
            x = self.features(x)
        return self.head(x)


x, y, _, _ = digits(args.samples, image=True)
model = Net(args.width)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for epoch in range(6):
    for a, b in loader(x, y):
        optimizer.zero_grad()
        loss = criterion(model(a), b)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
