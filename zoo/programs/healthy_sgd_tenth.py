"""SGD at 0.1 with momentum and batch norm, as for residual networks; evaluation every epoch.

expect: nothing
half: second
"""

import torch
import torch.nn.functional as F
from common import arguments, digits, loader
from torch import nn

args = arguments(width=16, lr=0.1, samples=1200)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)

    def forward(self, x):
        return F.relu(x + self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))


x, y, test_x, test_y = digits(args.samples, image=True)
stem = [nn.Conv2d(1, args.width, 3, padding=1, bias=False), nn.BatchNorm2d(args.width), nn.ReLU()]
model = nn.Sequential(
    *stem, Residual(args.width), nn.MaxPool2d(2), Residual(args.width), nn.AdaptiveAvgPool2d(1),
    nn.Flatten(), nn.Linear(args.width, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4)
for epoch in range(4):
    model.train()
    for a, b in loader(x, y, batch=64):
        optimizer.zero_grad()
        F.cross_entropy(model(a), b).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, F.cross_entropy(model(test_x), test_y).item())
