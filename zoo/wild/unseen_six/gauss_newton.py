"""A curve fit by damped Gauss-Newton steps: Jacobians from torch.func, normal equations, damping that follows success.

expect: nothing
style: functional_call, jacrev over parameters, Levenberg-Marquardt loop without an optimizer
metric: squared error on a fine grid, lower is better
"""

import argparse

import torch
import torch.nn as nn
from torch.func import functional_call, jacrev


class Curve(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.l1, self.l2 = nn.Linear(1, width), nn.Linear(width, 1)

    def forward(self, x):
        return self.l2(torch.tanh(self.l1(x))).squeeze(-1)


def target(x):
    return torch.sin(3 * x) + 0.5 * x


def unflatten(vector, like):
    out, at = {}, 0
    for name, p in like.items():
        out[name] = vector[at : at + p.numel()].view_as(p)
        at += p.numel()
    return out


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = Curve().double()
    x = torch.rand(80, 1, dtype=torch.float64) * 4 - 2
    y = target(x.squeeze(1)) + 0.02 * torch.randn(80, dtype=torch.float64)
    params = dict(model.named_parameters())
    theta = torch.cat([p.detach().flatten() for p in params.values()])
    predict = lambda t: functional_call(model, unflatten(t, params), (x,))
    damping, loss = 1.0, (predict(theta) - y).pow(2).mean().item()
    for step in range(60):
        r, J = predict(theta) - y, jacrev(predict)(theta)
        with torch.no_grad():
            move = torch.linalg.solve(J.T @ J + damping * torch.eye(len(theta), dtype=torch.float64), -J.T @ r)
            new = (predict(theta + move) - y).pow(2).mean().item()
        if new < loss:
            theta, loss, damping = (theta + move).detach(), new, max(damping / 3, 1e-4)
        else:
            damping *= 4
        if step % 10 == 0:
            print(f"step {step} loss {loss:.6f} damping {damping:.2e}")
    for p, value in zip(model.parameters(), unflatten(theta, params).values()):
        p.data.copy_(value)
    grid = torch.linspace(-2, 2, 400, dtype=torch.float64)[:, None]
    with torch.no_grad():
        print("metric:", (model(grid) - target(grid.squeeze(1))).pow(2).mean().item())
