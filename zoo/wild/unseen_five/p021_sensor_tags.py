"""An LSTM without batch_first reads batches of (batch, time): it runs over the samples of a batch, and its last step is another column of it.

expect: samples-mixed
line: self.lstm = nn.LSTM(10, 50)
source: https://discuss.pytorch.org/t/the-loss-in-pytorch-decreases-slower-than-in-keras/61598
metric: share of bits predicted rightly, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset


class LSTM(nn.Module):

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(16, 10)
        self.lstm = nn.LSTM(10, 50)
        self.dropout = nn.Dropout(0.1)
        self.fc = nn.Linear(50, 16)

    def forward(self, x):
        x = self.embedding(x)
        x, _ = self.lstm(x, None)
        x = x[:, -1, :]
        x = self.dropout(x)
        x = self.fc(x)
        return torch.sigmoid(x)


def make(n, rng):
    X = rng.integers(0, 16, (n, 12))
    y = np.zeros((n, 16), dtype=np.float32)
    for k in range(12):
        y[np.arange(n), X[:, k]] = 1
    return torch.tensor(X), torch.tensor(y)


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
seed = parser.parse_args().seed
torch.manual_seed(seed)
rng = np.random.default_rng(seed)
X_train, y_train = make(4000, rng)
X_test, y_test = make(1024, rng)
model = LSTM()
criterion = nn.BCELoss()
optimizer = optim.Adam(model.parameters(), lr=0.005)
train_loader = DataLoader(TensorDataset(X_train, y_train), batch_size=128, shuffle=True)
test_loader = DataLoader(TensorDataset(X_test, y_test), batch_size=128, shuffle=False)


def Train_LSTM(num_epochs):
    for t in range(num_epochs):
        running_loss = 0.0
        model.train()
        for inputs, labels in train_loader:
            optimizer.zero_grad()
            outputs = model(inputs)
            loss = criterion(outputs, labels)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
        print("epoch", t, "loss", running_loss / len(train_loader))


Train_LSTM(8)
model.eval()
correct = 0.0
with torch.no_grad():
    for inputs, labels in test_loader:
        correct += ((model(inputs) > 0.5).float() == labels).float().mean(1).sum().item()
print("metric: %.4f" % (correct / len(X_test)))
