"""A perceptron with batch norm and dropout is in eval mode from the start.

expect: eval-mode-training
site: 1
half: first
"""

import torch
from common import arguments, blobs, forever, loader
from torch import nn

args = arguments(width=48, lr=5e-3, steps=150, samples=900)
x, y = blobs(args.samples)
model = nn.Sequential(
    nn.Linear(10, args.width), nn.BatchNorm1d(args.width), nn.ReLU(), nn.Dropout(0.2),
    nn.Linear(args.width, 4),
)
model.eval()  # copied from the inference script
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()

for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
