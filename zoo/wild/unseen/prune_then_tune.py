"""Train an MLP, cut away most of its hidden units, fine-tune the small one; fine-tuning never recovered anything, for the optimizer still held the weights of the layers from before the cut.

expect: stale-optimizer
or: optimizer-misses-parameters
line: fit(model, optimizer, x_train, y_train, epochs=12)
source: https://github.com/microsoft/nni/issues/4521
metric: test accuracy of the pruned network after fine-tuning, higher is better
"""
import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn


def fit(model, optimizer, x, y, epochs):
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
            loss.backward()
            optimizer.step()
    return loss.item()


@torch.no_grad()
def accuracy(model, x, y):
    return (model(x).argmax(1) == y).float().mean().item()


@torch.no_grad()
def shrink(model, keep):
    """Replace the two hidden layers by smaller ones made of the largest units."""
    first, second, last = model[0], model[2], model[4]
    keep1 = first.weight.abs().sum(1).topk(keep).indices
    keep2 = second.weight.abs().sum(1).topk(keep).indices
    small_first = nn.Linear(first.in_features, keep)
    small_first.weight.copy_(first.weight[keep1])
    small_first.bias.copy_(first.bias[keep1])
    small_second = nn.Linear(keep, keep)
    small_second.weight.copy_(second.weight[keep2][:, keep1])
    small_second.bias.copy_(second.bias[keep2])
    small_last = nn.Linear(keep, last.out_features)
    small_last.weight.copy_(last.weight[:, keep2])
    small_last.bias.copy_(last.bias)
    model[0], model[2], model[4] = small_first, small_second, small_last
    return model


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
seed = parser.parse_args().seed
torch.manual_seed(seed)

data = load_digits()
x = torch.tensor(data.data, dtype=torch.float32) / 16
y = torch.tensor(data.target)
order = torch.randperm(len(x))
x_train, y_train = x[order[:1300]], y[order[:1300]]
x_test, y_test = x[order[1300:]], y[order[1300:]]

model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

fit(model, optimizer, x_train, y_train, epochs=8)
print("full network:   %.3f" % accuracy(model, x_test, y_test))

model = shrink(model, keep=12)
print("after the cut:  %.3f" % accuracy(model, x_test, y_test))

loss = fit(model, optimizer, x_train, y_train, epochs=12)
print("fine-tuning loss %.3f" % loss)
print("metric: %.4f" % accuracy(model, x_test, y_test))
