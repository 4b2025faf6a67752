"""A convolutional network, AdamW with a rate of 1e-8 (a typing error).

expect: learning-rate-too-low
half: fresh
net: cnn
"""

import torch
import torch.nn.functional as F
from common import arguments, digits, loader
from torch import nn

args = arguments(width=12, samples=800)


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 3)
        self.conv2 = nn.Conv2d(width, 2 * width, 3)
        self.fc = nn.Linear(2 * width * 16, 10)

    def forward(self, x):
        x = F.leaky_relu(self.conv1(x))
        x = F.leaky_relu(self.conv2(x))
        return F.log_softmax(self.fc(x.flatten(1)), dim=1)


x, y, vx, vy = digits(args.samples, image=True)
model = Net(args.width)
opt = torch.optim.AdamW(model.parameters(), lr=1e-8)
for epoch in range(5):
    model.train()
    for a, b in loader(x, y, batch=32):
        opt.zero_grad()
        loss = F.nll_loss(model(a), b)
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        right = (model(vx).argmax(1) == vy).float().mean()
    print(epoch, loss.item(), right.item())
