"""A linear map by hand from the beginning of cubic curves to their end: the values are in the hundreds, and every step overshoots.

expect: learning-rate-too-high
or: input-not-normalized
line: lr = 1e-6
source: https://web-offline.shuffle-on.com/content/stats.stackexchange.com_en_all_2024-10/questions/594738/loss-is-growing-between-epochs-in-simple-model
metric: log10 of the squared error relative to the variance, lower is better
"""

import argparse
import math

import numpy as np
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
seed = parser.parse_args().seed
np.random.seed(seed)

x = np.linspace(-10, 10, 100)
curves = np.stack([a * x**3 + b * x**2 + c * x for a, b, c in np.random.uniform(0.5, 1.5, (40, 3))])
loss_fn = torch.nn.MSELoss(reduction="sum")


def get_trgts(i):
    return torch.tensor(curves[:, i:])


def get_weights(i, o):
    return torch.tensor(np.random.normal(0, 0.1, (o, i))).requires_grad_()


def get_params(i):
    return torch.tensor(curves[:, :i])


weights = get_weights(80, 20)
trgts = get_trgts(80)
params = get_params(80)
bias = get_weights(1, 20)

lr = 1e-6


def apply_step(weights, bias, prn=True):
    preds = params @ weights.T + bias.T
    loss = loss_fn(preds, trgts)
    loss.backward()
    with torch.no_grad():
        weights -= weights.grad * lr
        bias -= bias.grad * lr
        weights.grad.zero_()
        bias.grad.zero_()
    if prn:
        print(loss.item())
    return loss.item()


for i in range(2000):
    last = apply_step(weights, bias, prn=i % 200 == 0)

error = last / trgts.numel() / trgts.var().item()
print("metric:", math.log10(error) if math.isfinite(error) and error > 0 else 99.0)
