"""Sharpness-aware minimisation: two forward and backward passes for one step, with the weights moved and moved back between.

expect: nothing
style: own optimizer that wraps another, in-place changes of parameters outside of step()
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_digits


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base = base(self.param_groups, **kwargs)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def first_step(self):
        norm = torch.stack([p.grad.norm() for g in self.param_groups for p in g["params"]]).norm()
        for g in self.param_groups:
            for p in g["params"]:
                e = p.grad * (g["rho"] / (norm + 1e-12))
                p.add_(e)
                self.state[p]["e"] = e
        self.zero_grad()

    @torch.no_grad()
    def second_step(self):
        for g in self.param_groups:
            for p in g["params"]:
                p.sub_(self.state[p]["e"])
        self.base.step()
        self.zero_grad()

    def step(self, closure=None):
        raise NotImplementedError


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    X, Y = load_digits(return_X_y=True)
    p = torch.randperm(len(X))
    X, Y = torch.tensor(X, dtype=torch.float32)[p] / 8 - 1, torch.tensor(Y)[p]
    net = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 10))
    criterion = nn.CrossEntropyLoss()
    optimizer = SAM(net.parameters(), torch.optim.SGD, rho=0.1, lr=0.05, momentum=0.9)
    for epoch in range(8):
        for i in torch.randperm(1300).split(50):
            loss = criterion(net(X[i]), Y[i])
            loss.backward()
            optimizer.first_step()
            criterion(net(X[i]), Y[i]).backward()
            optimizer.second_step()
        print("epoch", epoch, "loss", loss.item())
    with torch.no_grad():
        print("metric:", (net(X[1300:]).argmax(1) == Y[1300:]).float().mean().item())


if __name__ == "__main__":
    main()
