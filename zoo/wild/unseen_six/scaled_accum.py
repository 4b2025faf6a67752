"""Gradient accumulation done well: losses are divided, the rest of an epoch is stepped too, and the scheduler counts updates.

expect: nothing
style: accumulation over four micro-batches, OneCycleLR over updates, clipping before the step
metric: test accuracy, higher is better
"""

import argparse
import math

import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--accumulation-steps", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=6)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    X, y = make_classification(3000, 30, n_informative=12, n_classes=5, n_clusters_per_class=1, class_sep=1.5, random_state=args.seed)
    X, y = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    loader = DataLoader(TensorDataset(X[:2390], y[:2390]), batch_size=8, shuffle=True)
    model = nn.Sequential(nn.Linear(30, 64), nn.LayerNorm(64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 5))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    updates = math.ceil(len(loader) / args.accumulation_steps)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, steps_per_epoch=updates, epochs=args.epochs)
    for epoch in range(args.epochs):
        model.train()
        optimizer.zero_grad()
        total = 0.0
        for i, (xb, yb) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(xb), yb)
            (loss / args.accumulation_steps).backward()
            total += loss.item()
            if (i + 1) % args.accumulation_steps == 0 or i + 1 == len(loader):
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        print(f"epoch {epoch} loss {total / len(loader):.4f} lr {scheduler.get_last_lr()[0]:.5f}")
    model.eval()
    with torch.no_grad():
        print("metric:", (model(X[2390:]).argmax(1) == y[2390:]).float().mean().item())


if __name__ == "__main__":
    main()
