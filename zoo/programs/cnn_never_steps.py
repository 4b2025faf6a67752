"""A convolutional network whose training function forgot the step.

expect: missing-step
half: first
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=16, lr=1e-3, samples=700)
x, y, _, _ = digits(args.samples, image=True)
model = nn.Sequential(
    nn.Conv2d(1, args.width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(args.width, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(128, 10),
)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()


def train_one_epoch():
    running = 0.0
    for images, labels in loader(x, y):
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        running += loss.item()
    return running


for epoch in range(4):
    print(epoch, train_one_epoch())
