"""Reptile on sine waves: copies are trained on a task for some steps, and the weights move a little towards the copies.

expect: nothing
style: deep copies, inner SGD, outer update written by hand, adaptation at test time
metric: squared error after ten steps on ten points, lower is better
"""

import argparse
import copy
import math
import random

import torch
import torch.nn as nn


class Task:
    def __init__(self):
        self.phase, self.amplitude = random.uniform(0, math.pi), random.uniform(0.5, 3)

    def __call__(self, x):
        return self.amplitude * torch.sin(x + self.phase)


def adapt(model, task, x, steps, lr=0.02):
    clone = copy.deepcopy(model)
    inner = torch.optim.SGD(clone.parameters(), lr=lr)
    for _ in range(steps):
        loss = (clone(x) - task(x)).pow(2).mean()
        inner.zero_grad()
        loss.backward()
        inner.step()
    return clone, loss.item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--outer", type=int, default=1200)
    args = parser.parse_args()
    random.seed(args.seed), torch.manual_seed(args.seed)
    model = nn.Sequential(nn.Linear(1, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1))
    x = torch.linspace(-4, 4, 40)[:, None]
    for it in range(args.outer):
        rate = 0.5 * (1 - it / args.outer)
        clone, loss = adapt(model, Task(), x[torch.randperm(40)[:20]], 5)
        with torch.no_grad():
            for p, q in zip(model.parameters(), clone.parameters()):
                p.add_(q - p, alpha=rate)
        if it % 200 == 0:
            print("iteration", it, "loss on its task", loss)
    errors = []
    for _ in range(50):
        task = Task()
        clone, _ = adapt(model, task, x[torch.randperm(40)[:10]], 10)
        with torch.no_grad():
            errors.append((clone(x) - task(x)).pow(2).mean().item())
    print("metric:", sum(errors) / len(errors))
