"""Mixed precision on the CPU: bfloat16 in the forward pass, float32 weights and losses.

expect: nothing
style: autocast around forward and loss, no scaler, channels-last, AdamW
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
        self.norm1, self.norm2 = nn.GroupNorm(4, 16), nn.GroupNorm(4, 32)
        self.fc = nn.Linear(32 * 4, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.norm1(self.conv1(x))), 2)
        x = nn.functional.max_pool2d(torch.relu(self.norm2(self.conv2(x))), 2)
        return self.fc(x.flatten(1))


def train_one_epoch(model, loader, optimizer, criterion):
    model.train()
    total = 0.0
    for x, y in loader:
        x = x.to(memory_format=torch.channels_last)
        optimizer.zero_grad(set_to_none=True)
        with torch.amp.autocast("cpu", dtype=torch.bfloat16):
            loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
    return total / len(loader.dataset)


@torch.inference_mode()
def evaluate(model, loader):
    model.eval()
    right = 0
    for x, y in loader:
        with torch.amp.autocast("cpu", dtype=torch.bfloat16):
            right += (model(x).float().argmax(1) == y).sum().item()
    return right / len(loader.dataset)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    digits = load_digits()
    x, y = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16, torch.tensor(digits.target)
    order = torch.randperm(len(x))
    train_loader = DataLoader(TensorDataset(x[order[:1400]], y[order[:1400]]), batch_size=32, shuffle=True)
    test_loader = DataLoader(TensorDataset(x[order[1400:]], y[order[1400:]]), batch_size=128)
    model = Net().to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(args.epochs):
        print("epoch", epoch, "loss", train_one_epoch(model, train_loader, optimizer, nn.CrossEntropyLoss()))
    print("metric:", evaluate(model, test_loader))
