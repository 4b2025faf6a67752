"""One scan in fifty shows a finding; trained as it is, the network says "nothing" to all of them.

expect: class-collapse
line: criterion = nn.CrossEntropyLoss()
source: https://github.com/collinzrj/Bugs/issues/18
metric: balanced accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=6)
args = parser.parse_args()
torch.manual_seed(args.seed)


def scans(n, rate):
    label = (torch.rand(n) < rate).long()
    image = torch.randn(n, 1, 16, 16)
    pos = torch.randint(1, 11, (n, 2))
    for i in label.nonzero().flatten().tolist():
        r, c = pos[i].tolist()
        image[i, 0, r : r + 4, c : c + 4] += 1.3
    return image, label


train_x, train_y = scans(3000, 1 / 50)
test_x, test_y = scans(800, 0.5)
train_loader = DataLoader(TensorDataset(train_x, train_y), batch_size=48, shuffle=True)

model = nn.Sequential(
    nn.Conv2d(1, 8, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(1),
    nn.Flatten(), nn.Linear(16, 2),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(args.epochs):
    model.train()
    correct, seen = 0, 0
    for images, labels in train_loader:
        optimizer.zero_grad()
        outputs = model(images)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        correct += (outputs.argmax(1) == labels).sum().item()
        seen += len(labels)
    print(f"[{epoch + 1}/{args.epochs}] acc: {correct / seen:.4f} loss: {loss.item():.4f}")

model.eval()
with torch.no_grad():
    guess = model(test_x).argmax(1)
    recalls = [(guess[test_y == k] == k).float().mean() for k in (0, 1)]
print("metric: %.4f" % (sum(recalls) / 2))
