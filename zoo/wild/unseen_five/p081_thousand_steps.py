"""A tanh network is to draw a sine over x = 0, 1, ..., 999, and is given x as it is.

expect: input-not-normalized
line: X = np.arange(T).reshape(-1, 1)
source: https://wiki.gubat.org/content/stackoverflow.com_en_all_2023-11/questions/46995209/neural-network-toy-model-to-fit-sine-function-fails-what-s-wrong
metric: mean squared error, lower is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)

T = 1000
X = np.arange(T).reshape(-1, 1)
Y = np.sin(np.arange(T) * 4 * np.pi / T).reshape(-1, 1)

x_in = torch.tensor(X, dtype=torch.float32)
y_out = torch.tensor(Y, dtype=torch.float32)

input_size, hidden_size, output_size = 1, 100, 1
lr = 0.003


class NeuralNet(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super(NeuralNet, self).__init__()
        self.fc1 = nn.Linear(input_size, hidden_size)
        self.tanh = nn.Tanh()
        self.fc2 = nn.Linear(hidden_size, hidden_size)
        self.fc3 = nn.Linear(hidden_size, output_size)

    def forward(self, x):
        out = self.tanh(self.fc1(x))
        out = self.tanh(self.fc2(out))
        return self.fc3(out)


net = NeuralNet(input_size, hidden_size, output_size)
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(net.parameters(), lr=lr)
for step in range(1500):
    optimizer.zero_grad()
    loss = criterion(net(x_in), y_out)
    loss.backward()
    optimizer.step()
    if step % 200 == 0:
        print("step %4d  %.5f" % (step, loss.item()))

with torch.no_grad():
    print("metric:", criterion(net(x_in), y_out).item())
