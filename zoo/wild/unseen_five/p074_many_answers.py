"""A mixture density network for an inverse problem with several answers; its likelihood loss is below zero at the end.

expect: nothing
style: MixtureSameFamily, sigma through softplus, negative log likelihood
metric: mean log likelihood of test data, higher is better
"""

import argparse

import torch
import torch.distributions as D
import torch.nn as nn


class MDN(nn.Module):
    def __init__(self, k=8):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh())
        self.logits, self.mean, self.scale = (nn.Linear(48, k) for _ in range(3))
        nn.init.uniform_(self.mean.bias, -1, 1)

    def forward(self, x):
        h = self.body(x)
        components = D.Normal(self.mean(h), nn.functional.softplus(self.scale(h)) + 1e-3)
        return D.MixtureSameFamily(D.Categorical(logits=self.logits(h)), components)


def inverse(n):
    y = torch.rand(n) * 2 - 1
    x = y + 0.3 * torch.sin(2 * torch.pi * y) + 0.02 * torch.randn(n)
    return x.unsqueeze(1), y


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)
model = MDN()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=1500)
for step in range(1500):
    x, y = inverse(128)
    loss = -model(x).log_prob(y).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 200 == 0:
        print("step", step, "nll", loss.item())
with torch.no_grad():
    x, y = inverse(3000)
    print("metric:", model(x).log_prob(y).mean().item())
