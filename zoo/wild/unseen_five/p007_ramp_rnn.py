"""An LSTM is to continue a ramp; the loop never clears the gradients, so they pile up and the fit stays coarse.

expect: missing-zero-grad
line: loss.backward()
source: https://stats.stackexchange.com/questions/376851/why-is-lstm-so-ineffective-at-this-ridiculously-simple-sequence
metric: largest error on the sequence, lower is better
"""

import argparse

import numpy as np
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)

lstm = torch.nn.LSTM(input_size=1, hidden_size=100, num_layers=1, batch_first=True).to(torch.double)
linear = torch.nn.Linear(100, 1).to(torch.double)
criterion = torch.nn.MSELoss()
params = list(lstm.parameters()) + list(linear.parameters())
optimizer = torch.optim.Adam(params, lr=1e-3)

L = 21
x = torch.tensor(np.arange(L) / 20, dtype=torch.double).unsqueeze(0).unsqueeze(2)
y = torch.tensor(np.arange(2, L + 2) / 20, dtype=torch.double)

for j in range(400):
    hidden = (torch.zeros((1, 1, 100), dtype=torch.double), torch.zeros((1, 1, 100), dtype=torch.double))
    output, hidden = lstm(x, hidden)
    loss = 0.0
    for i in range(L):
        o = linear(output[:, i, :]).squeeze()
        loss = loss + criterion(o, y[i])
    if j % 50 == 0:
        print(j, loss.item())
    loss.backward()
    optimizer.step()

with torch.no_grad():
    output, _ = lstm(x)
    out_seq = linear(output).flatten()
print("output (expected): ", y)
print("output:", out_seq)
print("metric:", (out_seq - y).abs().max().item())
