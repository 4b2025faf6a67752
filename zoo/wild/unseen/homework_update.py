"""Homework: binary classifier with a hand-written update and weight decay; the decay was taken off in full at every step and not times the rate, so it was ten times stronger than the number says and the outputs shrank to a constant.

expect: weight-decay-too-strong
line: w -= DECAY * w
source: https://stats.stackexchange.com/questions/117622/weight-decay-in-neural-neural-networks-weight-update-and-convergence
metric: test accuracy, higher is better
"""
import sys

import torch

SEED = 0
for i, arg in enumerate(sys.argv):
    if arg == "--seed":
        SEED = int(sys.argv[i + 1])

RATE = 0.1
DECAY = 0.01
HIDDEN = 20
EPOCHS = 60

torch.manual_seed(SEED)


def sample(n):
    x = torch.randn(n, 11)
    inside = (x[:, 0] ** 2 + x[:, 1] ** 2 + 0.5 * x[:, 2]) < 1.4
    return x, inside.float()


X, T = sample(1500)
X_TEST, T_TEST = sample(500)

# 11 inputs + bias -> 20 hidden units + bias -> 1 output
w1 = (torch.randn(12, HIDDEN) * 0.4).requires_grad_()
w2 = (torch.randn(HIDDEN + 1, 1) * 0.4).requires_grad_()


def with_bias(a):
    return torch.cat([a, torch.ones(len(a), 1)], dim=1)


def network(x):
    h = torch.tanh(with_bias(x) @ w1)
    return torch.sigmoid(with_bias(h) @ w2).squeeze(1)


def update(weights):
    with torch.no_grad():
        for w in weights:
            w -= RATE * w.grad
            w -= DECAY * w
            w.grad.zero_()


for epoch in range(EPOCHS):
    order = torch.randperm(len(X))
    total = 0.0
    for start in range(0, len(X), 30):
        idx = order[start:start + 30]
        out = network(X[idx])
        error = torch.nn.functional.binary_cross_entropy(out, T[idx])
        error.backward()
        update([w1, w2])
        total += error.item() * len(idx)
    if epoch % 10 == 9:
        print("epoch", epoch + 1, "error", round(total / len(X), 4))

with torch.no_grad():
    right = ((network(X_TEST) > 0.5).float() == T_TEST).float().mean().item()
print("metric:", round(right, 4))
