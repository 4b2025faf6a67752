"""Every kernel is drawn from a normal distribution of spread one.

expect: bad-init-scale
or: exploding-gradient, learning-rate-too-high
half: fresh
net: cnn
"""

import torch
import torch.nn.functional as F
from common import arguments, digits, loader
from torch import nn

args = arguments(width=16, lr=1e-3, samples=700)


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.conv3 = nn.Conv2d(width, width, 3, padding=1)
        self.fc = nn.Linear(width, 10)

    def forward(self, x):
        for conv in (self.conv1, self.conv2, self.conv3):
            x = F.relu(conv(x))
        return self.fc(x.mean((2, 3)))


x, y, _, _ = digits(args.samples, image=True)
model = Net(args.width)
for p in model.parameters():
    if p.dim() > 1:
        nn.init.normal_(p)
opt = torch.optim.SGD(model.parameters(), lr=args.lr)
for epoch in range(5):
    for a, b in loader(x, y, batch=32):
        opt.zero_grad()
        loss = F.cross_entropy(model(a), b)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
