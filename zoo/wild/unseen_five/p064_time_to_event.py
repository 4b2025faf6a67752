"""Cox's partial likelihood for censored times: each sample is compared with those of its batch still at risk.

expect: nothing
style: custom loss over sorted batches, large batches, concordance as metric
metric: concordance index, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn


def cox_loss(risk, time, event):
    order = torch.argsort(time, descending=True)
    risk, event = risk[order], event[order]
    return -((risk - torch.logcumsumexp(risk, 0)) * event).sum() / event.sum().clamp(min=1)


def concordance(risk, time, event):
    first = (time[:, None] < time[None]) & event[:, None].bool()
    return ((risk[:, None] > risk[None]) & first).sum().item() / first.sum().item()


def patients(n, rng):
    x = rng.standard_normal((n, 8))
    log_hazard = 1.2 * x[:, 0] + np.sin(2 * x[:, 1]) * 1.5 - x[:, 2] * x[:, 3]
    t = rng.exponential(np.exp(-log_hazard))
    c = rng.exponential(2.0, n)
    to = lambda a: torch.tensor(a, dtype=torch.float32)
    return to(x), to(np.minimum(t, c)), to(t <= c)


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=25)
args = parser.parse_args()
torch.manual_seed(args.seed)
rng = np.random.default_rng(args.seed)
x, t, e = patients(2000, rng)
x_test, t_test, e_test = patients(800, rng)
net = nn.Sequential(nn.Linear(8, 48), nn.SELU(), nn.Linear(48, 48), nn.SELU(), nn.Linear(48, 1, bias=False))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3, weight_decay=1e-4)
for epoch in range(args.epochs):
    for i in torch.randperm(2000).split(200):
        loss = cox_loss(net(x[i]).squeeze(1), t[i], e[i])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 5 == 0:
        print("epoch", epoch, "partial likelihood", loss.item())
with torch.no_grad():
    print("metric:", concordance(net(x_test).squeeze(1), t_test, e_test))
