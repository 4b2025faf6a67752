"""`F.softmax` at the end of the forward, and cross entropy as the loss.

expect: softmax-before-cross-entropy
half: first
"""

import torch
import torch.nn.functional as F
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=12, lr=2e-3, steps=150, samples=900)


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(1, width, 3, padding=1)
        self.fc = nn.Linear(width * 16, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv(x)), 2).flatten(1)
        return F.softmax(self.fc(x), dim=1)


x, y, _, _ = digits(args.samples, image=True)
model = Net(args.width)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(step, loss.item())
