"""For ten steps the learning rate is far too high; most of the units of a layer never recover.

expect: dead-units
or: learning-rate-too-high
site: fc1
half: second
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=64, steps=220, samples=1000)


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(1, 16, 3, padding=1)
        self.fc1 = nn.Linear(256, width)
        self.fc2 = nn.Linear(width, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv(x)), 2)
        self.hidden = torch.relu(self.fc1(x.flatten(1)))
        return self.fc2(self.hidden)


x, y, _, _ = digits(args.samples, image=True)
model = Net(args.width)
with torch.no_grad():
    model.fc1.bias.fill_(-4.0)  # "so that the features are sparse"
    model.fc1.weight.mul_(0.5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
criterion = nn.CrossEntropyLoss()
for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
