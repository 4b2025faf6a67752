"""No optimizer at all: tensors with requires_grad, momentum and decay written out under no_grad, gradients set to None.

expect: nothing
style: functions of a list of tensors, manual Nesterov updates, rate halved by hand
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
g = torch.Generator().manual_seed(args.seed)

data, target = load_digits(return_X_y=True)
order = torch.randperm(len(data), generator=g)
X, Y = torch.tensor(data, dtype=torch.float32)[order] / 16, torch.tensor(target)[order]

sizes = [64, 80, 40, 10]
params = []
for i, o in zip(sizes, sizes[1:]):
    params += [torch.randn(i, o, generator=g) * (2 / i) ** 0.5, torch.zeros(o)]
for p in params:
    p.requires_grad_(True)
velocity = [torch.zeros_like(p) for p in params]


def model(x):
    W1, b1, W2, b2, W3, b3 = params
    return F.relu(F.relu(x @ W1 + b1) @ W2 + b2) @ W3 + b3


lr, momentum, decay = 0.05, 0.9, 1e-4
for epoch in range(15):
    if epoch in (8, 12):
        lr /= 2
    for idx in torch.randperm(1400, generator=g).split(50):
        loss = F.cross_entropy(model(X[idx]), Y[idx])
        loss.backward()
        with torch.no_grad():
            for p, v in zip(params, velocity):
                grad = p.grad + decay * p
                v.mul_(momentum).add_(grad)
                p -= lr * (grad + momentum * v)
                p.grad = None
    print(epoch, loss.item())

with torch.no_grad():
    print("metric:", (model(X[1400:]).argmax(1) == Y[1400:]).float().mean().item())
