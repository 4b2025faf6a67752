"""Softmax regression and one hidden layer with everything by hand: weights are plain tensors and w.data -= lr * w.grad.

expect: nothing
style: no nn.Module, no optimizer, updates and zeroing by hand (looks like a missing optimizer)
"""

import random
import sys

import numpy as np
import torch
from sklearn.datasets import load_digits

seed = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else 0
random.seed(seed)
torch.manual_seed(seed)
np.random.seed(seed)

features, labels = load_digits(return_X_y=True)
features = torch.tensor((features - 4.9) / 6.0, dtype=torch.float32)
labels = torch.tensor(labels)
indices = np.random.permutation(len(features))
train_idx, test_idx = indices[:1400], indices[1400:]

num_inputs, num_hiddens, num_outputs = 64, 64, 10
W1 = torch.randn(num_inputs, num_hiddens) * 0.1
b1 = torch.zeros(num_hiddens)
W2 = torch.randn(num_hiddens, num_outputs) * 0.1
b2 = torch.zeros(num_outputs)
params = [W1, b1, W2, b2]
for param in params:
    param.requires_grad_()


def data_iter(batch_size, idx):
    idx = list(idx)
    random.shuffle(idx)
    for i in range(0, len(idx), batch_size):
        j = torch.tensor(idx[i : i + batch_size])
        yield features[j], labels[j]


def relu(X):
    return torch.max(X, torch.zeros_like(X))


def net(X):
    return relu(X @ W1 + b1) @ W2 + b2


def cross_entropy(y_hat, y):
    log_p = y_hat - torch.logsumexp(y_hat, dim=1, keepdim=True)
    return -log_p[range(len(y_hat)), y]


def sgd(params, lr):
    for param in params:
        param.data -= lr * param.grad


lr, num_epochs = 0.1, 8
for epoch in range(num_epochs):
    train_l_sum, n = 0.0, 0
    for X, y in data_iter(32, train_idx):
        l = cross_entropy(net(X), y).mean()
        if params[0].grad is not None:
            for param in params:
                param.grad.data.zero_()
        l.backward()
        sgd(params, lr)
        train_l_sum += l.item() * len(y)
        n += len(y)
    print("epoch %d, loss %.4f" % (epoch + 1, train_l_sum / n))

with torch.no_grad():
    accuracy = (net(features[test_idx]).argmax(1) == labels[test_idx]).float().mean().item()
print("metric: %.4f" % accuracy)
