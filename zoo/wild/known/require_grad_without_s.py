"""The backbone should be frozen, but I wrote param.require_grad: a new attribute, and the features are trained away.

expect: call-without-effect
line: param.require_grad = False
source: https://github.com/udacity/deep-learning-v2-pytorch/issues/12
metric: accuracy of the old head on the old task after fine-tuning, higher is better
"""

import argparse

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn, optim

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
seed = parser.parse_args().seed
torch.manual_seed(seed)

data, target = load_digits(return_X_y=True)
order = np.random.RandomState(seed).permutation(len(data))
data = torch.tensor((data[order] - 4.9) / 6.0, dtype=torch.float32)
target = torch.tensor(target[order])
x_train, y_train, x_test, y_test = data[:1300], target[:1300], data[1300:], target[1300:]


def batches(x, y, size=32):
    for index in torch.randperm(len(x)).split(size):
        yield x[index], y[index]


# the "pretrained" network: ten digits
features = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
digit_head = nn.Linear(32, 10)
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam([*features.parameters(), *digit_head.parameters()], lr=2e-3)
for epoch in range(6):
    for x, y in batches(x_train, y_train):
        optimizer.zero_grad()
        loss = criterion(digit_head(features(x)), y)
        loss.backward()
        optimizer.step()
    print("pretraining", epoch, loss.item())

# Freeze training for all "features" layers: other heads use them too
for param in features.parameters():
    param.require_grad = False

# a new head on top: odd or even
parity_head = nn.Linear(32, 2)
optimizer = optim.SGD([*features.parameters(), *parity_head.parameters()], lr=0.1, momentum=0.9)
for epoch in range(5):
    for x, y in batches(x_train, y_train % 2):
        optimizer.zero_grad()
        loss = criterion(parity_head(features(x)), y)
        loss.backward()
        optimizer.step()
    print("transfer", epoch, loss.item())

with torch.no_grad():
    print("parity", (parity_head(features(x_test)).argmax(1) == y_test % 2).float().mean().item())
    print("metric: %.4f" % (digit_head(features(x_test)).argmax(1) == y_test).float().mean().item())
