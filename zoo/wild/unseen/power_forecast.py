"""Next-hour load forecast from a window of past hours with an LSTM; the window function returned the last hour of the window as the target, the network learned to repeat its last input and the forecast lags by one hour.

expect: target-is-input
or: target-shifted, target-misaligned
line: y.append(series[i + window - 1])
source: https://github.com/tensorflow/tensorflow/issues/40343
metric: mean squared error of the forecast of the next hour, lower is better
"""
import argparse

import numpy as np
import torch
import torch.nn as nn


def make_series(n, rng):
    t = np.arange(n)
    base = np.sin(2 * np.pi * t / 8) + 0.6 * np.sin(2 * np.pi * t / 5 + 1)
    return (base + 0.1 * rng.standard_normal(n)).astype(np.float32)


def sliding_windows(series, window):
    x, y = [], []
    for i in range(len(series) - window):
        x.append(series[i:i + window])
        y.append(series[i + window - 1])
    return torch.tensor(np.array(x)).unsqueeze(-1), torch.tensor(np.array(y)).unsqueeze(-1)


class LSTM(nn.Module):
    def __init__(self, hidden_size=24):
        super(LSTM, self).__init__()
        self.lstm = nn.LSTM(input_size=1, hidden_size=hidden_size, batch_first=True)
        self.fc = nn.Linear(hidden_size, 1)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.fc(out[:, -1])


ap = argparse.ArgumentParser()
ap.add_argument("--seed", type=int, default=0)
seed = ap.parse_args().seed
torch.manual_seed(seed)
rng = np.random.default_rng(seed)
window = 16
series = make_series(1200, rng)
train_series, test_series = series[:1000], series[1000:]
trainX, trainY = sliding_windows(train_series, window)

lstm = LSTM()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(lstm.parameters(), lr=0.01)
for epoch in range(12):
    for idx in torch.randperm(len(trainX)).split(64):
        outputs = lstm(trainX[idx])
        optimizer.zero_grad()
        loss = criterion(outputs, trainY[idx])
        loss.backward()
        optimizer.step()
    if epoch % 3 == 0:
        print("Epoch: %d, loss: %1.5f" % (epoch, loss.item()))

# walk through the test series hour by hour, as in operation
errors = []
lstm.eval()
with torch.no_grad():
    for now in range(window, len(test_series)):
        past = torch.tensor(test_series[now - window:now]).view(1, window, 1)
        errors.append((lstm(past).item() - test_series[now]) ** 2)
print("metric: %.5f" % np.mean(errors))
