"""Activity recognition: forward ends with F.softmax, and the loss is nn.CrossEntropyLoss.

expect: softmax-before-cross-entropy
line: return F.softmax(out, dim=1)
source: https://github.com/jindongwang/Deep-learning-activity-recognition/issues/10
metric: cross-entropy of the predicted probabilities on test windows, lower is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

result = []


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Sequential(nn.Conv1d(3, 16, 9), nn.ReLU(), nn.MaxPool1d(2))
        self.conv2 = nn.Sequential(nn.Conv1d(16, 24, 5), nn.ReLU(), nn.MaxPool1d(2))
        self.fc1 = nn.Linear(24 * 12, 64)
        self.fc2 = nn.Linear(64, 6)

    def forward(self, x):
        out = self.conv2(self.conv1(x))
        out = out.reshape(-1, 24 * 12)
        out = self.fc2(F.relu(self.fc1(out)))
        return F.softmax(out, dim=1)


def probabilities(model, x):
    out = model(x)
    if (out.min() >= 0) and torch.allclose(out.sum(1), torch.ones(len(out)), atol=1e-3):
        return out
    return F.softmax(out, dim=1)


def windows(n, rng):
    """Accelerometer windows of 64 samples: six activities with their own pace and tilt."""
    t = np.arange(64) / 50
    label = rng.integers(0, 6, n)
    pace = np.array([0.1, 0.1, 0.1, 1.8, 2.2, 2.8])[label] * rng.normal(1, 0.05, n)
    tilt = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0], [0.8, 0.3, 0], [0.9, 0, 0.3]])[label]
    force = np.array([0.05, 0.05, 0.05, 0.5, 0.5, 0.6])[label]
    wave = np.sin(2 * np.pi * pace[:, None] * t + rng.uniform(0, 6.28, (n, 1)))
    x = tilt[:, :, None] + force[:, None, None] * wave[:, None] + rng.normal(0, 0.45, (n, 3, 64))
    return torch.tensor(x, dtype=torch.float32), torch.tensor(label)


def train(model, optimizer, train_loader, epochs):
    criterion = nn.CrossEntropyLoss()
    for e in range(epochs):
        model.train()
        correct, total_loss = 0, 0
        for sample, target in train_loader:
            output = model(sample)
            loss = criterion(output, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total_loss += loss.item()
            correct += (output.argmax(1) == target).sum().item()
        acc = 100.0 * correct / len(train_loader.dataset)
        result.append([acc, total_loss / len(train_loader)])
        print(f"Epoch: [{e + 1}/{epochs}], loss: {total_loss / len(train_loader):.4f}, train acc: {acc:.2f}%")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    x, y = windows(2400, rng)
    model = Network()
    optimizer = torch.optim.Adam(params=model.parameters(), lr=1e-3)
    train(model, optimizer, DataLoader(TensorDataset(x[:2000], y[:2000]), batch_size=32, shuffle=True), epochs=6)
    model.eval()
    with torch.no_grad():
        p = probabilities(model, x[2000:])
    print("metric:", F.nll_loss(p.clamp_min(1e-9).log(), y[2000:]).item())
