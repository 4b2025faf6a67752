"""The LSTM is made without batch_first=True and gets (batch, time, features): it runs along the batch.

expect: samples-mixed
line: self.lstm = nn.LSTM(
source: https://github.com/facebookresearch/fairseq/issues/2449
metric: test accuracy, higher is better
"""
import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset, random_split


class SimpleLSTMEncoder(nn.Module):
    def __init__(self, input_dim=8, hidden_dim=64, dropout=0.1):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.lstm = nn.LSTM(
            input_size=input_dim,
            hidden_size=hidden_dim,
            num_layers=1,
        )

    def forward(self, src):
        outputs, _ = self.lstm(src)
        return self.dropout(outputs[:, -1])


class RowModel(nn.Module):
    """Reads an image row by row, from the top to the bottom."""

    def __init__(self, classes=10):
        super().__init__()
        self.encoder = SimpleLSTMEncoder()
        self.classifier = nn.Linear(64, classes)

    def forward(self, rows):
        return self.classifier(self.encoder(rows))


def run(seed, epochs=14):
    torch.manual_seed(seed)
    digits = load_digits()
    rows = torch.tensor(digits.images / 16.0, dtype=torch.float32)
    train, test = random_split(TensorDataset(rows, torch.tensor(digits.target)), [1400, 397])
    model = RowModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        model.train()
        for x, y in DataLoader(train, 32, shuffle=True):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        if epoch % 3 == 0:
            print("epoch", epoch, "loss", round(loss.item(), 4))
    model.eval()
    hits = 0
    with torch.no_grad():
        for x, y in DataLoader(test, 32):
            hits += (model(x).argmax(1) == y).sum().item()
    return hits / len(test)


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--seed", type=int, default=0)
    print("metric:", run(cli.parse_args().seed))
