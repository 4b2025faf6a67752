"""Gradient accumulation done right: four micro-batches, each loss divided by four, one step.

expect: nothing
style: accumulation, zero_grad after the step, OneCycle counted in optimizer steps
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--accumulation_steps", type=int, default=4)
parser.add_argument("--micro_batch", type=int, default=12)
parser.add_argument("--epochs", type=int, default=8)
args = parser.parse_args()
torch.manual_seed(args.seed)

X, Y = load_digits(return_X_y=True)
X, Y = torch.tensor(X, dtype=torch.float32) / 16, torch.tensor(Y)
perm = torch.randperm(len(X))
loader = DataLoader(TensorDataset(X[perm[:1344]], Y[perm[:1344]]), batch_size=args.micro_batch, shuffle=True)
model = nn.Sequential(nn.Linear(64, 96), nn.LayerNorm(96), nn.ReLU(), nn.Linear(96, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
steps = args.epochs * len(loader) // args.accumulation_steps
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.3, total_steps=steps)
criterion = nn.CrossEntropyLoss()

optimizer.zero_grad()
for epoch in range(args.epochs):
    for i, (inputs, labels) in enumerate(loader):
        loss = criterion(model(inputs), labels) / args.accumulation_steps
        loss.backward()
        if (i + 1) % args.accumulation_steps == 0:
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    print("epoch %d loss %.4f lr %.4f" % (epoch, loss.item() * args.accumulation_steps, scheduler.get_last_lr()[0]))

model.eval()
with torch.no_grad():
    print("metric:", (model(X[perm[1344:]]).argmax(1) == Y[perm[1344:]]).float().mean().item())
