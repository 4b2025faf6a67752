"""A sum of ten sines, as in a comparison with Keras: outputs of (n, 1) meet targets of (n,), and the loss compares every pair.

expect: loss-broadcast
line: loss = loss_fn(y_hat, yb)
source: https://discuss.pytorch.org/t/400-higher-error-with-pytorch-compared-with-identical-keras-model-with-adam-optimizer/160720
metric: squared error on validation data, lower is better
"""

import argparse
import warnings

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")


def get_data(seed):
    rng = np.random.default_rng(seed)
    Xtrain = rng.normal(0, 1, size=(4000, 10))
    Xval = rng.normal(0, 1, size=(700, 10))
    ytrain, yval = np.sum(np.sin(Xtrain), axis=1), np.sum(np.sin(Xval), axis=1)
    mean, std = ytrain.mean(), ytrain.std()
    return [torch.tensor(a, dtype=torch.float32) for a in (Xtrain, Xval, (ytrain - mean) / std, (yval - mean) / std)]


class XTModel(nn.Module):
    def __init__(self, input_dim=10, hidden=20):
        super().__init__()
        self.hidden = nn.Linear(input_dim, hidden)
        self.out = nn.Linear(hidden, 1)
        nn.init.xavier_uniform_(self.hidden.weight)
        nn.init.xavier_uniform_(self.out.weight)
        nn.init.zeros_(self.hidden.bias)
        nn.init.zeros_(self.out.bias)

    def forward(self, x):
        return self.out(torch.relu(self.hidden(x)))


def train_model(model, loader, epochs, lr=1e-3):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, eps=1e-07)
    loss_fn = nn.MSELoss()
    for epoch in range(epochs):
        total = 0.0
        for xb, yb in loader:
            y_hat = model(xb)
            loss = loss_fn(y_hat, yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1}/{epochs} - loss: {total / len(loader):.5f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    Xtrain, Xval, ytrain, yval = get_data(args.seed)
    model = XTModel()
    train_model(model, DataLoader(TensorDataset(Xtrain, ytrain), batch_size=32, shuffle=True), epochs=10)
    with torch.no_grad():
        print("metric:", nn.functional.mse_loss(model(Xval).squeeze(1), yval).item())
