"""A smoke run: twenty steps on random batches of a table, just to see that everything fits together.

expect: nothing
style: very short run
"""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--max_steps", type=int, default=20)
args = parser.parse_args()
torch.manual_seed(args.seed)

net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
optim = torch.optim.Adam(net.parameters(), lr=0.02)
true_w = torch.randn(10, 1)


def batch(n=64):
    x = torch.randn(n, 10)
    return x, x @ true_w


first = None
for step in range(args.max_steps):
    x, y = batch()
    loss = nn.functional.mse_loss(net(x), y)
    optim.zero_grad()
    loss.backward()
    optim.step()
    first = first or loss.item()
    print(step, loss.item())

with torch.no_grad():
    x, y = batch(500)
    print("metric: %.4f (started at %.4f)" % (nn.functional.mse_loss(net(x), y).item(), first))
