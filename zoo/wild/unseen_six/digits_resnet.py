"""A small residual network for digits with label smoothing, random shifts and a cosine schedule: the loss stays above 0.5, as smoothing demands.

expect: nothing
style: residual blocks, label smoothing, augmentation on the fly, SGD with Nesterov, cosine annealing per step
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


class BasicBlock(nn.Module):
    def __init__(self, i, o, stride=1):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o)
        self.conv2, self.bn2 = nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)
        self.shortcut = nn.Identity() if i == o and stride == 1 else nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))
        nn.init.zeros_(self.bn2.weight)

    def forward(self, x):
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + self.shortcut(x))


def shift(x):
    """Each batch is moved by a pixel or not."""
    dy, dx = torch.randint(0, 3, (2,)).tolist()
    return F.pad(x, (1, 1, 1, 1))[:, :, dy : dy + 8, dx : dx + 8]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=14)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    digits = load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16 - 0.3
    y = torch.tensor(digits.target)
    tr, te = train_test_split(range(len(y)), test_size=0.25, random_state=args.seed, stratify=digits.target)
    x_train, y_train = x[tr], y[tr]
    model = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1, bias=False), nn.BatchNorm2d(12), nn.ReLU(), BasicBlock(12, 12), BasicBlock(12, 24, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10))
    steps = args.epochs * -(-len(tr) // 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    for epoch in range(args.epochs):
        model.train()
        for idx in torch.randperm(len(tr)).split(64):
            loss = criterion(model(shift(x_train[idx])), y_train[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        print(f"epoch {epoch} loss {loss.item():.3f} lr {scheduler.get_last_lr()[0]:.4f}")
    model.eval()
    with torch.no_grad():
        print("metric:", (model(x[te]).argmax(1) == y[te]).float().mean().item())


if __name__ == "__main__":
    main()
