"""Gradient surgery for two tasks that get in each other's way: gradients are projected and written back by hand.

expect: nothing
style: PCGrad, several backward passes with retain_graph, p.grad assigned before step
"""

import argparse
import random

import torch
import torch.nn as nn
import torch.nn.functional as F


class PCGrad:
    def __init__(self, optimizer):
        self._optim = optimizer

    @property
    def params(self):
        return [p for group in self._optim.param_groups for p in group["params"]]

    def zero_grad(self):
        self._optim.zero_grad(set_to_none=True)

    def step(self):
        self._optim.step()

    def pc_backward(self, objectives):
        grads = []
        for i, objective in enumerate(objectives):
            self.zero_grad()
            objective.backward(retain_graph=i + 1 < len(objectives))
            grads.append(torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in self.params]))
        merged = torch.zeros_like(grads[0])
        for i, g in enumerate(grads):
            g = g.clone()
            others = [h for j, h in enumerate(grads) if j != i]
            random.shuffle(others)
            for h in others:
                dot = torch.dot(g, h)
                if dot < 0:
                    g -= dot * h / h.norm().pow(2)
            merged += g
        start = 0
        for p in self.params:
            p.grad = merged[start : start + p.numel()].view_as(p).clone()
            start += p.numel()


class TwoTasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(10, 48), nn.Tanh(), nn.Linear(48, 24), nn.Tanh())
        self.heads = nn.ModuleList([nn.Linear(24, 1), nn.Linear(24, 1)])

    def forward(self, x):
        h = self.shared(x)
        return [head(h).squeeze(1) for head in self.heads]


def sample(n, w):
    x = torch.randn(n, 10)
    return x, [torch.sin(x @ w[0]), torch.cos(x @ w[0]) * torch.tanh(x @ w[1])]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    random.seed(seed)
    torch.manual_seed(seed)
    w = torch.randn(2, 10) / 2.5
    net = TwoTasks()
    optimizer = PCGrad(torch.optim.Adam(net.parameters(), lr=3e-3))
    for it in range(450):
        x, targets = sample(64, w)
        losses = [F.mse_loss(out, y) for out, y in zip(net(x), targets)]
        optimizer.pc_backward(losses)
        optimizer.step()
        if it % 90 == 0:
            print("iter", it, [round(l.item(), 4) for l in losses])
    with torch.no_grad():
        x, targets = sample(1000, w)
        error = [(F.mse_loss(out, y) / y.var()).item() for out, y in zip(net(x), targets)]
    print("metric: %.4f" % max(error))


if __name__ == "__main__":
    main()
