"""The test part of the series is scaled with a MinMaxScaler of its own: its numbers mean something else than in training.

expect: evaluation-scale
line: x_test = MinMaxScaler().fit_transform(
source: https://github.com/remigenet/TKAN/issues/8
metric: mean absolute error of the test forecasts in the original units, lower is better
"""

import sys

import numpy as np
import torch
from sklearn.preprocessing import MinMaxScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 0
np.random.seed(SEED)
torch.manual_seed(SEED)

SEQUENCE_LENGTH = 20
N_AHEAD = 1

# five years of daily temperatures, to be tested on the next summer
day = np.arange(5 * 365 + 240)
season = 12 - 14 * np.cos(2 * np.pi * day / 365)
weather = np.zeros(len(day))
for i in range(1, len(day)):
    weather[i] = 0.8 * weather[i - 1] + 1.5 * np.random.randn()
series = season + weather


def windows(values):
    X = np.stack([values[i : i + SEQUENCE_LENGTH] for i in range(len(values) - SEQUENCE_LENGTH - N_AHEAD + 1)])
    y = values[SEQUENCE_LENGTH + N_AHEAD - 1 :]
    return X.astype("float32"), y.astype("float32")


train_raw = series[: 5 * 365, None]
test_raw = series[5 * 365 + 120 :, None]
scaler = MinMaxScaler()
x_train = scaler.fit_transform(train_raw)
x_test = MinMaxScaler().fit_transform(test_raw)

X_train, y_train = windows(x_train)
X_test, _ = windows(x_test)
_, y_test = windows(test_raw)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 16, batch_first=True)
        self.dense = nn.Linear(16, N_AHEAD)

    def forward(self, x):
        h, _ = self.lstm(x)
        return self.dense(h[:, -1])


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
loader = DataLoader(TensorDataset(torch.from_numpy(X_train), torch.from_numpy(y_train)), batch_size=64, shuffle=True)
for epoch in range(10):
    losses = []
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print("Epoch", epoch, "loss", np.mean(losses))

model.eval()
with torch.no_grad():
    preds = model(torch.from_numpy(X_test)).numpy()
preds = scaler.inverse_transform(preds)
print("metric:", float(np.abs(preds - y_test).mean()))
