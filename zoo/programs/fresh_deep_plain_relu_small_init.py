"""Twenty plain layers, weights drawn with a spread of 0.01: nothing comes through.

expect: bad-init-scale
or: vanishing-gradient
half: fresh
net: mlp
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=64, depth=20, lr=0.1, samples=800)
layers = [nn.Flatten(), nn.Linear(64, args.width), nn.ReLU()]
for _ in range(args.depth):
    layers += [nn.Linear(args.width, args.width), nn.ReLU()]
model = nn.Sequential(*layers, nn.Linear(args.width, 10))


def init(m):
    if isinstance(m, nn.Linear):
        m.weight.data.normal_(0, 0.01)
        m.bias.data.zero_()


model.apply(init)
x, y, _, _ = digits(args.samples, image=True)
opt = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(5):
    for a, b in loader(x, y, batch=32):
        opt.zero_grad()
        loss = loss_fn(model(a), b)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
