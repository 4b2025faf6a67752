"""No trainer and no optimizer: the weights are moved by hand.

expect: nothing
"""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
digits = load_digits()
x, y = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
lr = 0.3
for epoch in range(6):
    order = torch.randperm(1400)
    for i in range(0, 1400, 32):
        rows = order[i : i + 32]
        loss = F.cross_entropy(model(x[rows]), y[rows])
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= lr * p.grad
    with torch.no_grad():
        valid = F.cross_entropy(model(x[1400:]), y[1400:])
    print(epoch, loss.item(), valid.item())
print("logged: train", loss.item(), "eval", valid.item())
