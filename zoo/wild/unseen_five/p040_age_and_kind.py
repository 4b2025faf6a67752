"""Two tasks on one body, weighed by learned uncertainties; the sum of the losses goes below zero.

expect: nothing
style: homoscedastic weights as parameters, regression on standardised targets, two heads
metric: accuracy of one task plus R squared of the other, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class MultiTaskNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.kind, self.age = nn.Linear(64, 4), nn.Linear(64, 1)
        self.log_sigma = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        h = self.body(x)
        return self.kind(h), self.age(h).squeeze(-1)

    def loss(self, x, kind, age):
        kind_hat, age_hat = self(x)
        ce, mse = F.cross_entropy(kind_hat, kind), F.mse_loss(age_hat, age)
        s = self.log_sigma
        return torch.exp(-2 * s[0]) * ce + s[0] + 0.5 * torch.exp(-2 * s[1]) * mse + s[1], ce, mse


def animals(n, w):
    x = torch.randn(n, 16)
    kind = torch.stack([torch.tanh(x @ w[i]) + 0.5 * x[:, i] for i in range(4)], 1).argmax(1)
    age = torch.sin(x @ w[4]) + 0.3 * x[:, 5] ** 2
    return x, kind, (age - 0.3) / 0.8


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)
w = torch.randn(5, 16) / 4
train, test = animals(3000, w), animals(800, w)
net = MultiTaskNet()
optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
for epoch in range(20):
    for i in torch.randperm(3000).split(60):
        loss, ce, mse = net.loss(*(t[i] for t in train))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 4 == 0:
        print(f"epoch {epoch}: total {loss.item():.3f} ce {ce.item():.3f} mse {mse.item():.3f} sigmas {net.log_sigma.exp().tolist()}")
net.eval()
with torch.no_grad():
    x, kind, age = test
    kind_hat, age_hat = net(x)
    r2 = 1 - (age_hat - age).pow(2).sum() / (age - age.mean()).pow(2).sum()
    print("metric:", (kind_hat.argmax(1) == kind).float().mean().item() + r2.item())
