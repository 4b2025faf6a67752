"""All weights of a deep network drawn with a standard deviation of 0.01: for a long time nothing reaches the output.

expect: bad-init-scale
or: vanishing-gradient
line: m.weight.data.normal_(0.0, 0.01)
source: https://github.com/ageron/handson-ml/pull/176
metric: test accuracy, higher is better
"""

import argparse

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

n_epochs = 6
batch_size = 16

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
seed = parser.parse_args().seed
np.random.seed(seed)
torch.manual_seed(seed)

X, y = load_digits(return_X_y=True)
idx = np.random.permutation(len(X))
X = torch.from_numpy(((X[idx] - X.mean()) / X.std()).astype(np.float32))
y = torch.from_numpy(y[idx])
X_train, y_train, X_test, y_test = X[:1200], y[:1200], X[1200:], y[1200:]

layers, width = [], 48
for i in range(5):
    layers += [nn.Linear(64 if i == 0 else width, width), nn.ReLU()]
net = nn.Sequential(*layers, nn.Linear(width, 10))


def init_weights(m):
    if isinstance(m, nn.Linear):
        m.weight.data.normal_(0.0, 0.01)
        m.bias.data.zero_()


net.apply(init_weights)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
xent = nn.CrossEntropyLoss()

for epoch in range(n_epochs):
    for iteration in range(len(X_train) // batch_size):
        batch = slice(iteration * batch_size, (iteration + 1) * batch_size)
        loss = xent(net(X_train[batch]), y_train[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    shuffled = torch.randperm(len(X_train))
    X_train, y_train = X_train[shuffled], y_train[shuffled]
    print("Epoch:", epoch + 1, "loss:", loss.item())

with torch.no_grad():
    print("metric: {:.4f}".format((net(X_test).argmax(1) == y_test).float().mean().item()))
