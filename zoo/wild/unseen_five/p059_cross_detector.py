"""Pictures of 3 x 3 are multiplied with one vector of weights, which gives (n,); the expected answers are (n, 1), and mse() broadcasts.

expect: loss-broadcast
line: loss = mse(y_hat, expected_y)
source: https://forums.fast.ai/t/trouble-with-a-simple-cross-recognizer/58206
metric: accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)

# 'X' represented as 3x3
x = torch.FloatTensor([[1, 0, 1], [0, 1, 0], [1, 0, 1]])
sample_count = 90
ratio_of_crosses_in_input = 0.4

input_ = torch.rand(sample_count, 3, 3)
crosses = int(sample_count * ratio_of_crosses_in_input)
input_[:crosses] = (x + 0.2 * torch.randn(crosses, 3, 3)).clamp(0, 1)
bias = torch.ones(sample_count, 1)
input_with_bias = torch.cat((input_.reshape(sample_count, 9), bias), 1)
expected_y = torch.zeros(sample_count, 1)
expected_y[:crosses] = 1

layer1 = nn.Parameter(torch.rand(10) - 0.5)
sig = torch.nn.Sigmoid()
lr = 0.5


def mse(y_hat, y):
    return ((y_hat - y) ** 2).mean()


def update(i):
    y_hat = sig(input_with_bias @ layer1)
    loss = mse(y_hat, expected_y)
    if i % 500 == 0:
        print(loss.item())
    loss.backward()
    with torch.no_grad():
        layer1.sub_(lr * layer1.grad)
        layer1.grad.zero_()


# Update the weights
for i in range(4000):
    update(i)

with torch.no_grad():
    answer = sig(input_with_bias @ layer1) > 0.5
print("metric:", (answer.float() == expected_y[:, 0]).float().mean().item())
