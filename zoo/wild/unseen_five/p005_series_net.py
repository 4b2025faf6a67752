"""A one-layer BiLSTM is to predict the next value at every step of a window; its backward half reads that value, so no forecast is learned.

expect: sees-the-future
or: target-is-input
line: self.lstm = nn.LSTM(input_dim, hidden_dim, layer_dim, batch_first=True, bidirectional=True)
source: https://discuss.pytorch.org/t/one-layer-bilstm-is-not-learning/175731
metric: squared error of the forecast after the window, lower is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn


class LSTMModel(nn.Module):
    def __init__(self, input_dim, hidden_dim, layer_dim, output_dim):
        super(LSTMModel, self).__init__()
        self.lstm = nn.LSTM(input_dim, hidden_dim, layer_dim, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * hidden_dim, output_dim)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.fc(out)


def henon(n, seed):
    rng = np.random.default_rng(seed)
    x, y, out = rng.uniform(-0.1, 0.1), 0.0, []
    for _ in range(n + 100):
        x, y = 1 - 1.4 * x * x + y, 0.3 * x
        out.append(x)
    return np.array(out[100:], dtype=np.float32)


def windows(series, length):
    x = np.stack([series[i : i + length] for i in range(len(series) - length)])
    y = np.stack([series[i + 1 : i + length + 1] for i in range(len(series) - length)])
    return torch.from_numpy(x).unsqueeze(-1), torch.from_numpy(y).unsqueeze(-1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x_train, y_train = windows(henon(1500, args.seed), 24)
    x_val, y_val = windows(henon(500, args.seed + 1), 24)
    model = LSTMModel(1, 24, 1, 1)
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    for epoch in range(10):
        order = torch.randperm(len(x_train))
        total = 0.0
        for idx in order.split(64):
            optimizer.zero_grad()
            loss = criterion(model(x_train[idx]), y_train[idx])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        print("Epoch {}: train loss {:.5f}".format(epoch, total / len(x_train)))
    model.eval()
    with torch.no_grad():
        forecast = model(x_val)[:, -1]
        print("metric:", criterion(forecast, y_val[:, -1]).item())
