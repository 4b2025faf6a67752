"""The training loop of a first regression has forward, loss, backward and step, but nothing that clears the gradients.

expect: missing-zero-grad
line: loss.backward()   # compute gradients
source: https://thecodeforge.io/ml-ai/pytorch-basics/
metric: squared error on test data, lower is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_diabetes

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)

# --- data -----------------------------------------------------------
X, y = load_diabetes(return_X_y=True)
X = torch.tensor((X - X.mean(0)) / X.std(0), dtype=torch.float32)
y = torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32).unsqueeze(1)
idx = torch.randperm(len(X))
X_train, y_train, X_test, y_test = X[idx[:340]], y[idx[:340]], X[idx[340:]], y[idx[340:]]

# --- model ----------------------------------------------------------
model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))
loss_fn = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.03)

# --- training loop --------------------------------------------------
for epoch in range(200):
    model.train()
    y_pred = model(X_train)           # forward
    loss = loss_fn(y_pred, y_train)   # loss
    loss.backward()   # compute gradients
    optimizer.step()  # update weights
    if epoch % 20 == 0:
        print(f"Epoch {epoch:3d} | Loss: {loss.item():.4f}")

# --- evaluation -----------------------------------------------------
model.eval()
with torch.inference_mode():
    print(f"metric: {loss_fn(model(X_test), y_test).item():.4f}")
