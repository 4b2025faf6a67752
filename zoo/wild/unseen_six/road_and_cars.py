"""Street scenes in which two percent of the pixels are cars: the network says "none" everywhere, which is right nearly everywhere.

expect: class-collapse
line: criterion = nn.CrossEntropyLoss()
source: https://github.com/hellochick/ICNet-tensorflow/issues/65
metric: mean IoU of the rare classes, higher is better
"""

import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=8)
args = parser.parse_args()
torch.manual_seed(args.seed)


def scenes(n, size=24):
    label = torch.zeros(n, size, size, dtype=torch.long)
    for i in range(n):
        for kind in (1, 2):
            y, x = torch.randint(0, size - 3, (2,)).tolist()
            label[i, y : y + 3, x : x + 3] = kind
    colour = torch.tensor([[0.4, 0.4, 0.4], [0.8, 0.4, 0.4], [0.4, 0.4, 0.8]])
    image = colour[label].permute(0, 3, 1, 2) + 0.35 * torch.randn(n, 3, size, size)
    return image, label


class ICNetLike(nn.Module):
    def __init__(self):
        super().__init__()
        self.low = nn.Sequential(nn.AvgPool2d(2), nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Upsample(scale_factor=2))
        self.high = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())
        self.fuse = nn.Conv2d(16, 3, 1)

    def forward(self, x):
        return self.fuse(torch.cat([self.low(x), self.high(x)], 1))


train_x, train_y = scenes(300)
test_x, test_y = scenes(80)
model = ICNetLike()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(args.epochs):
    total = 0.0
    for idx in torch.randperm(len(train_x)).split(10):
        optimizer.zero_grad()
        loss = criterion(model(train_x[idx]), train_y[idx])
        loss.backward()
        optimizer.step()
        total += loss.item()
    print("epoch", epoch, "loss", total / 30)

with torch.no_grad():
    guess = model(test_x).argmax(1)
ious = []
for kind in (1, 2):
    both = ((guess == kind) & (test_y == kind)).sum().item()
    either = ((guess == kind) | (test_y == kind)).sum().item()
    ious.append(both / max(1, either))
print("pixel accuracy", (guess == test_y).float().mean().item())
print("metric:", sum(ious) / 2)
