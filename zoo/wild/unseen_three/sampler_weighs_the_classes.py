"""WeightedRandomSampler gets one weight per class, not per sample: it only ever draws the first ten samples.

expect: repeated-batch
line: WeightedRandomSampler(class_weights
source: https://github.com/deep-voice/soundbay/pull/49
metric: balanced test accuracy, higher is better
"""

import argparse

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler


def imbalanced_digits(seed):
    x, y = load_digits(return_X_y=True)
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.3, random_state=seed, stratify=y)
    rng = np.random.default_rng(seed)
    keep = (y_train < 5) | (rng.random(len(y_train)) < 0.2)
    x_train, y_train = x_train[keep], y_train[keep]
    mean, std = x_train.mean(), x_train.std()
    as_tensor = lambda a: torch.tensor((a - mean) / std, dtype=torch.float32)
    return as_tensor(x_train), torch.tensor(y_train), as_tensor(x_test), torch.tensor(y_test)


def build_loader(x, y, batch_size=32):
    counts = torch.bincount(y, minlength=10)
    class_weights = 1.0 / counts.float()
    sampler = WeightedRandomSampler(class_weights, num_samples=len(y), replacement=True)
    return DataLoader(TensorDataset(x, y), batch_size=batch_size, sampler=sampler)


def train(net, loader, epochs, lr):
    optimizer = torch.optim.Adam(net.parameters(), lr=lr)
    criterion = nn.CrossEntropyLoss()
    net.train()
    for epoch in range(epochs):
        running = 0.0
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = criterion(net(inputs), labels)
            loss.backward()
            optimizer.step()
            running += loss.item()
        print("epoch %d  loss %.4f" % (epoch + 1, running / len(loader)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x_train, y_train, x_test, y_test = imbalanced_digits(args.seed)
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    train(net, build_loader(x_train, y_train), args.epochs, lr=2e-3)

    net.eval()
    with torch.no_grad():
        predicted = net(x_test).argmax(1)
    print("metric:", balanced_accuracy_score(y_test.numpy(), predicted.numpy()))
