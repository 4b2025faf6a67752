"""Sharpness-aware minimisation: two backward passes per step, the first one climbs.

expect: nothing
style: SAM with SGD as base optimizer, own Optimizer class, weights are moved up and back (looks like steps in the wrong direction)
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
        super(SAM, self).__init__(params, dict(rho=rho, **kwargs))
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups

    @torch.no_grad()
    def first_step(self, zero_grad=False):
        grads = [p.grad for group in self.param_groups for p in group["params"] if p.grad is not None]
        norm = torch.norm(torch.stack([g.norm(p=2) for g in grads]), p=2)
        for group in self.param_groups:
            scale = group["rho"] / (norm + 1e-12)
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["old_p"] = p.data.clone()
                p.add_(p.grad * scale)  # climb to the local maximum "w + e(w)"
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def second_step(self, zero_grad=False):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data = self.state[p]["old_p"]  # get back to "w" from "w + e(w)"
        self.base_optimizer.step()  # do the actual "sharpness-aware" update
        if zero_grad:
            self.zero_grad()

    def step(self, closure=None):
        raise NotImplementedError("SAM is stepped in two parts")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x, y = load_digits(return_X_y=True)
    order = torch.randperm(len(x))
    x, y = (torch.tensor(x, dtype=torch.float32)[order] - 4.9) / 6.0, torch.tensor(y)[order]
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = SAM(model.parameters(), torch.optim.SGD, rho=0.05, lr=0.05, momentum=0.9)
    for epoch in range(5):
        model.train()
        for rows in torch.randperm(1400).split(32):
            loss = F.cross_entropy(model(x[rows]), y[rows], label_smoothing=0.05)
            loss.backward()
            optimizer.first_step(zero_grad=True)
            F.cross_entropy(model(x[rows]), y[rows], label_smoothing=0.05).backward()
            optimizer.second_step(zero_grad=True)
        print("epoch", epoch, "loss", loss.item())
    model.eval()
    with torch.no_grad():
        print("metric: %.4f" % (model(x[1400:]).argmax(1) == y[1400:]).float().mean().item())
