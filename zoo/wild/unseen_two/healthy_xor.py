"""Four rows, all of them in every step, for a thousand steps: XOR as in the first chapter of every book.

expect: nothing
metric: share of the four rows that come out right, higher is better
"""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)

X = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
Y = torch.tensor([[0.0], [1.0], [1.0], [0.0]])


class XORModel(nn.Module):
    def __init__(self, hidden_units=8):
        super(XORModel, self).__init__()
        self.linear1 = nn.Linear(2, hidden_units)
        self.activation = nn.Tanh()
        self.linear2 = nn.Linear(hidden_units, 1)

    def forward(self, x):
        x = self.linear1(x)
        x = self.activation(x)
        return self.linear2(x)


model = XORModel()
loss_func = nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)

epochs = 1000
for i in range(epochs):
    optimizer.zero_grad()
    y_hat = model(X)
    loss = loss_func(y_hat, Y)
    loss.backward()
    optimizer.step()
    if i % 100 == 0:
        print("Epoch: {0}, Loss: {1}".format(i, loss.item()))

with torch.no_grad():
    probability = torch.sigmoid(model(X))
for row, p in zip(X.tolist(), probability.tolist()):
    print(row, "->", round(p[0], 3))
print("metric:", ((probability > 0.5) == (Y > 0.5)).float().mean().item())
