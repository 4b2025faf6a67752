"""A network with batch norm is trained with one image per batch: its running statistics are worthless.

expect: batchnorm-small-batch
line: batch_size=1
source: https://github.com/BCV-Uniandes/DMS/issues/30
metric: test accuracy, higher is better
"""
import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

ap = argparse.ArgumentParser()
ap.add_argument("--seed", type=int, default=0)
args = ap.parse_args()
torch.manual_seed(args.seed)


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
        )
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


digits = load_digits()
data = TensorDataset(torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16, torch.tensor(digits.target))
perm = torch.randperm(len(data)).tolist()
train_set, test_set = Subset(data, perm[:1400]), Subset(data, perm[1400:])
train_loader = DataLoader(train_set, batch_size=1, shuffle=True)
test_loader = DataLoader(test_set, batch_size=100)

model = Backbone()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
model.train()
running = 0.0
for i, (image, label) in enumerate(train_loader, 1):
    loss = nn.functional.cross_entropy(model(image), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    running += loss.item()
    if i % 200 == 0:
        print("step", i, "loss", running / 200)
        running = 0.0

model.eval()
correct = 0
with torch.no_grad():
    for image, label in test_loader:
        correct += (model(image).argmax(1) == label).sum().item()
print("metric:", correct / len(test_set))
