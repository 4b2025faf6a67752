"""opt.zero_grad() is missing: the gradients of all earlier steps are added up, and the loss swings.

expect: missing-zero-grad
source: https://github.com/IBM/aihwkit/issues/446
metric: test mean squared error, lower is better
"""
import argparse

import torch
from sklearn.datasets import load_diabetes
from torch.nn import Linear, Sequential, Tanh
from torch.nn.functional import mse_loss
from torch.optim import SGD

cli = argparse.ArgumentParser()
cli.add_argument("--seed", type=int, default=0)
cli.add_argument("--steps", type=int, default=300)
cfg = cli.parse_args()
torch.manual_seed(cfg.seed)

# Prepare the datasets (input and expected output).
x, y = load_diabetes(return_X_y=True, scaled=True)
x = torch.tensor(x, dtype=torch.float32) * 20
y = torch.tensor(y, dtype=torch.float32).unsqueeze(1)
y = (y - y.mean()) / y.std()
perm = torch.randperm(len(x))
x, y = x[perm], y[perm]
x_train, y_train, x_test, y_test = x[:330], y[:330], x[330:], y[330:]

# Define a two-layer network.
model = Sequential(Linear(10, 8), Tanh(), Linear(8, 1))

# Define a plain stochastic gradient descent optimizer.
opt = SGD(model.parameters(), lr=0.1)

for step in range(cfg.steps):
    # Add the training data to the model.
    pred = model(x_train)
    loss = mse_loss(pred, y_train)
    # Run training (backward propagation).
    loss.backward()
    opt.step()
    if step % 30 == 0:
        print("Loss error: {:.16f}".format(loss.item()))

with torch.no_grad():
    final = mse_loss(model(x_test), y_test).item()
print("metric:", final)
