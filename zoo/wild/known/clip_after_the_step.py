"""clip_grad_norm_ stands after optimizer.step(): it clips gradients that were used already, and a few huge ones throw the net out.

expect: call-without-effect
or: exploding-gradient
line: torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
source: https://github.com/VGraphRNN/VGRNN/issues/4
metric: median absolute error on clean test data, lower is better
"""

import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
seed = parser.parse_args().seed
torch.manual_seed(seed)

# hyperparameters
h_dim = 32
clip = 1.0
learning_rate = 0.03
steps = 400


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(3, h_dim, batch_first=True)
        self.out = nn.Linear(h_dim, 1)

    def forward(self, x):
        return self.out(self.rnn(x)[0][:, -1]).squeeze(1)


def links(n, spikes=True):
    """Weekly activity of three nodes; the counter of a fourth sometimes glitches."""
    x = torch.randn(n, 8, 3)
    y = torch.tanh(x[:, -1].sum(1)) + 0.5 * x[:, -2, 0]
    if spikes:
        glitch = torch.rand(n) < 0.01
        y = torch.where(glitch, y + 150 * torch.randn(n), y)
    return x, y


model = Recurrent()
optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)

for k in range(steps):
    x, y = links(32)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    if k % 50 == 0:
        print("step", k, "loss", loss.item())

with torch.no_grad():
    x, y = links(500, spikes=False)
    print("metric:", (model(x) - y).abs().median().item())
