"""Mixture of experts with top-two routing and a load-balancing term, on a function made of several regimes.

expect: nothing
style: each sample trains two of six experts only; the balancing loss sits near one from start to end and is meant to; noisy gating in training, clean gating in the test
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class Expert(nn.Module):
    def __init__(self, d_in, h):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d_in, h), nn.ReLU(), nn.Linear(h, 1))

    def forward(self, x):
        return self.net(x)


class MoE(nn.Module):
    def __init__(self, d_in=4, n_experts=6, k=2, h=24):
        super().__init__()
        self.k = k
        self.gate = nn.Linear(d_in, n_experts)
        self.experts = nn.ModuleList([Expert(d_in, h) for _ in range(n_experts)])

    def forward(self, x):
        logits = self.gate(x)
        if self.training:
            logits = logits + 0.3 * torch.randn_like(logits)
        probs = logits.softmax(-1)
        top, index = probs.topk(self.k, dim=-1)
        top = top / top.sum(-1, keepdim=True)
        weights = torch.zeros_like(probs).scatter(1, index, top)
        out = torch.zeros(len(x), 1)
        for e, expert in enumerate(self.experts):
            rows = (weights[:, e] > 0).nonzero().squeeze(1)
            if len(rows):
                out = out.index_add(0, rows, weights[rows, e:e + 1] * expert(x[rows]))
        load = (weights > 0).float().mean(0) / self.k
        balance = len(self.experts) * (load * probs.mean(0)).sum()
        return out.squeeze(1), balance


def regimes(n):
    x = torch.rand(n, 4) * 2 - 1
    zone = (x[:, 0] > 0).long() * 2 + (x[:, 1] > 0).long()
    parts = torch.stack([3 * x[:, 2], -2 * x[:, 3], 2 * x[:, 2] * x[:, 3], x[:, 2] ** 2 - 1], 1)
    return x, parts[torch.arange(n), zone]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    torch.manual_seed(ap.parse_args().seed)
    model = MoE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=500, power=1.0)
    for step in range(1, 501):
        x, y = regimes(192)
        out, balance = model(x)
        task = F.mse_loss(out, y)
        loss = task + 0.01 * balance
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 125 == 0:
            print(f"step {step} task {task.item():.4f} balance {balance.item():.3f}")
    model.eval()
    with torch.no_grad():
        x, y = regimes(2000)
        r2 = 1 - F.mse_loss(model(x)[0], y) / y.var()
    print(f"metric: {r2.item():.4f}")


if __name__ == "__main__":
    main()
