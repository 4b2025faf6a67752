"""No optimizer at all: momentum and decay are written out, on plain tensors in a list.

expect: nothing
style: functional network, parameters as leaves in a list, updates under no_grad, gradients set to None
metric: test accuracy, higher is better
"""

import argparse

import torch
from sklearn.datasets import load_digits

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)

x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x, dtype=torch.float32) / 16 - 0.3, torch.tensor(y)
order = torch.randperm(len(x))
x, y = x[order], y[order]

sizes = [64, 80, 40, 10]
weights = [(torch.randn(a, b) * (2 / a) ** 0.5).requires_grad_() for a, b in zip(sizes, sizes[1:])]
biases = [torch.zeros(b, requires_grad=True) for b in sizes[1:]]
velocity = [torch.zeros_like(p) for p in weights + biases]


def net(h):
    for i, (w, b) in enumerate(zip(weights, biases)):
        h = h @ w + b
        if i < len(weights) - 1:
            h = h.clamp(min=0)
    return h


def log_softmax(z):
    return z - z.exp().sum(-1, keepdim=True).log()


lr, mu, decay = 0.08, 0.9, 1e-4
for step in range(500):
    i = torch.randint(0, 1400, (64,))
    loss = -log_softmax(net(x[i]))[torch.arange(64), y[i]].mean()
    loss.backward()
    with torch.no_grad():
        for p, v in zip(weights + biases, velocity):
            v.mul_(mu).add_(p.grad + decay * p)
            p -= lr * v
            p.grad = None
    if step == 350:
        lr /= 10
    if step % 100 == 0:
        print(step, loss.item())

with torch.no_grad():
    print("metric:", (net(x[1400:]).argmax(1) == y[1400:]).float().mean().item())
