"""Pruning: three rounds of training, each removes half of the weights, puts the rest back to its start and trains anew.

expect: nothing
style: torch.nn.utils.prune, most weights are exactly zero at the end, rewinding
metric: test accuracy with an eighth of the weights, higher is better
"""

import argparse
import copy

import torch
import torch.nn as nn
import torch.nn.utils.prune as prune
from sklearn.datasets import load_digits

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
X, Y = load_digits(return_X_y=True)
p = torch.randperm(len(X))
X, Y = torch.tensor(X, dtype=torch.float32)[p] / 8 - 1, torch.tensor(Y)[p]

net = nn.Sequential(nn.Linear(64, 100), nn.ReLU(), nn.Linear(100, 60), nn.ReLU(), nn.Linear(60, 10))
layers = [(m, "weight") for m in net if isinstance(m, nn.Linear)]
start = copy.deepcopy(net.state_dict())


def train(epochs=6):
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(epochs):
        for i in torch.randperm(1300).split(50):
            loss = nn.functional.cross_entropy(net(X[i]), Y[i])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


def test():
    with torch.no_grad():
        return (net(X[1300:]).argmax(1) == Y[1300:]).float().mean().item()


print("dense", train(), test())
for r in range(3):
    prune.global_unstructured(layers, pruning_method=prune.L1Unstructured, amount=0.5)
    with torch.no_grad():
        for k, (m, _) in enumerate(layers):
            m.weight_orig.copy_(start[f"{2 * k}.weight"])
            m.bias.copy_(start[f"{2 * k}.bias"])
    left = sum(int(m.weight_mask.sum()) for m, _ in layers) / sum(m.weight_mask.numel() for m, _ in layers)
    print("round", r, "weights left %.3f" % left, "loss", train(), "test", test())
print("metric:", test())
