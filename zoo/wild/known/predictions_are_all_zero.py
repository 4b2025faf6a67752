"""A recurrent regression of standardised values with ReLU on the output: after a few steps it predicts 0 for everything.

expect: output-range
or: dead-units, output-misfits-loss
line: return torch.relu(self.dense(out))
source: https://github.com/keras-team/keras/issues/3687
metric: root mean squared error on test sequences, lower is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn


class RNN(nn.Module):
    def __init__(self, feat_num):
        super().__init__()
        self.lstm1 = nn.LSTM(feat_num, 32, batch_first=True)
        self.lstm2 = nn.LSTM(32, 16, batch_first=True)
        self.dense = nn.Linear(16, 1)

    def forward(self, x):
        out, _ = self.lstm1(x)
        out, _ = self.lstm2(out)
        return torch.relu(self.dense(out))


def sequences(n, timestep_num=20, feat_num=4):
    """Standardised flows: more often below the mean than above."""
    x = np.random.randn(n, timestep_num, feat_num)
    y = np.zeros((n, timestep_num, 1))
    level = np.zeros(n)
    for t in range(timestep_num):
        level = 0.6 * level + 0.8 * np.tanh(x[:, t, 0] - x[:, t, 1])
        y[:, t, 0] = level - 0.4
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
seed = parser.parse_args().seed
np.random.seed(seed)
torch.manual_seed(seed)

X, Y = sequences(1200)
X_test, Y_test = sequences(200)
rnn = RNN(4)
sgd = torch.optim.SGD(rnn.parameters(), lr=0.1, momentum=0.95, nesterov=True)
mse = nn.MSELoss()

NUM_EPOCH = 5
for epoch in range(1, NUM_EPOCH + 1):
    order = np.random.permutation(len(X))
    for b in range(0, len(X), 30):
        rows = order[b : b + 30]
        loss = mse(rnn(X[rows]), Y[rows])
        sgd.zero_grad()
        loss.backward()
        sgd.step()
    with torch.no_grad():
        out = rnn(X_test)
    print("Epoch %d/%d | loss = %f | mean prediction = %f" % (epoch, NUM_EPOCH, loss.item(), out.mean().item()))
print("metric: %f" % torch.sqrt(mse(out, Y_test)).item())
