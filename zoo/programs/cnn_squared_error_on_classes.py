"""A convolutional network with one output is trained on class numbers by squared error.

expect: loss-target-mismatch
half: second
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=12, lr=1e-3, samples=900)
x, y, _, _ = digits(args.samples, image=True)
model = nn.Sequential(
    nn.Conv2d(1, args.width, 3), nn.ReLU(), nn.Conv2d(args.width, 16, 3), nn.ReLU(), nn.Flatten(),
    nn.Linear(16 * 16, 32), nn.ReLU(), nn.Linear(32, 1),
)
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
for epoch in range(5):
    for images, labels in loader(x, y):
        optimizer.zero_grad()
        loss = criterion(model(images).squeeze(1), labels.float())
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
