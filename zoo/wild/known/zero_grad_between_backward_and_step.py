"""backward, zero_grad, step, in this order: the optimizer always steps with zero gradients.

expect: gradient-wiped
line: optimizer.zero_grad()
source: https://github.com/Tony-Y/pytorch_warmup/issues/12
metric: test accuracy, higher is better
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from torch.utils.data import DataLoader, TensorDataset, random_split

p = argparse.ArgumentParser()
p.add_argument("--seed", type=int, default=0)
p.add_argument("--epochs", type=int, default=5)
args = p.parse_args()
torch.manual_seed(args.seed)

x, y = load_digits(return_X_y=True)
dataset = TensorDataset(torch.tensor(x / 8.0 - 1.0, dtype=torch.float32), torch.tensor(y))
train_set, test_set = random_split(dataset, [1400, 397])
train_loader = DataLoader(train_set, 32, shuffle=True)
test_loader = DataLoader(test_set, 200)

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
num_steps = len(train_loader) * args.epochs
lr_scheduler = SequentialLR(
    optimizer,
    [LinearLR(optimizer, 0.05, total_iters=20), CosineAnnealingLR(optimizer, T_max=num_steps - 20)],
    milestones=[20],
)

for epoch in range(args.epochs):
    model.train()
    for images, labels in train_loader:
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
        lr_scheduler.step()
    print("epoch", epoch, "lr", lr_scheduler.get_last_lr()[0], "loss", loss.item())

model.eval()
right = 0
with torch.no_grad():
    for images, labels in test_loader:
        right += (model(images).argmax(1) == labels).sum().item()
print("metric:", right / len(test_set))
