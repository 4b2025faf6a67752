"""BatchNorm gets the momentum 0.99 of the other framework: here it means that the last batch alone makes the running statistics.

expect: batchnorm-momentum
line: momentum=0.99
source: https://github.com/pytorch/vision/issues/8250
metric: test accuracy, higher is better
"""

import argparse
from functools import partial

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class ResidualBlock(nn.Module):
    def __init__(self, width, norm_layer):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(width, width, bias=False), norm_layer(width), nn.GELU(),
            nn.Linear(width, width, bias=False), norm_layer(width),
        )

    def forward(self, x):
        return nn.functional.gelu(x + self.body(x))


class Net(nn.Module):
    def __init__(self, width=64, depth=5, norm_layer=None):
        super().__init__()
        if norm_layer is None:
            norm_layer = partial(nn.BatchNorm1d, eps=1e-3, momentum=0.99)
        self.stem = nn.Sequential(nn.Linear(64, width, bias=False), norm_layer(width), nn.GELU())
        self.blocks = nn.Sequential(*[ResidualBlock(width, norm_layer) for _ in range(depth)])
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))


def run(seed, epochs=5, batch_size=8, lr=1e-3):
    torch.manual_seed(seed)
    x, y = load_digits(return_X_y=True)
    data = TensorDataset(torch.tensor(x / 8.0 - 1.0, dtype=torch.float32), torch.tensor(y))
    train_set, test_set = random_split(data, [1400, 397])
    loader = DataLoader(train_set, batch_size=batch_size, shuffle=True, drop_last=True)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(loader))
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        model.train()
        running = 0.0
        for xb, yb in loader:
            loss = loss_fn(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            running += loss.item()
        print(f"[{epoch}] train loss {running / len(loader):.4f}")
    model.eval()
    right = 0
    with torch.no_grad():
        for xb, yb in DataLoader(test_set, batch_size=100):
            right += (model(xb).argmax(1) == yb).sum().item()
    return right / len(test_set)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    print("metric:", run(parser.parse_args().seed))
