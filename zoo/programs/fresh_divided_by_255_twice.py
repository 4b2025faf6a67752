"""Images divided by 255 in the data set and once more in the model.

expect: input-collapsed
or: learning-rate-too-low
half: fresh
net: cnn
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=12, lr=0.01, samples=800)
x, y, _, _ = digits(args.samples, image=True, scale=False)
x = x / 16 / 255 / 255


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, width, 3), nn.ReLU(), nn.Flatten())
        self.classifier = nn.Linear(36 * width, 10)

    def forward(self, x):
        return self.classifier(self.features(x))


model = Net(args.width)
opt = torch.optim.SGD(model.parameters(), lr=args.lr)
for epoch in range(6):
    for a, b in loader(x, y, batch=32):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
