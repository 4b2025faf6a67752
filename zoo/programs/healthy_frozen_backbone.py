"""A trained backbone with batch norm is frozen and kept in eval mode; only the head learns.

expect: nothing
half: second
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=16, lr=0.01, samples=900)
x, y, _, _ = digits(args.samples, image=True)
backbone = nn.Sequential(
    nn.Conv2d(1, args.width, 3, padding=1), nn.BatchNorm2d(args.width), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(args.width, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten(),
)
for p in backbone.parameters():
    p.requires_grad = False


class Probe(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(512, 10)

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x):
        return self.head(self.backbone(x))


model = Probe().train()
optimizer = torch.optim.Adam(model.head.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for epoch in range(6):
    for a, b in loader(x, y):
        optimizer.zero_grad()
        loss = criterion(model(a), b)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
