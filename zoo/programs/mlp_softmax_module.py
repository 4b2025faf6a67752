"""The last module is `nn.Softmax`, and the loss is `CrossEntropyLoss`.

expect: softmax-before-cross-entropy
half: first
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=64, lr=0.05, steps=200, samples=1000)
x, y, _, _ = digits(args.samples)

model = nn.Sequential(nn.Linear(64, args.width), nn.ReLU(), nn.Linear(args.width, 10), nn.Softmax(dim=1))
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()

for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
