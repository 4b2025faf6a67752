"""A neural ODE, solved by Euler steps: the same small network is called forty times in a forward pass.

expect: nothing
style: one module many times, trajectories of random length, gradient through the solver
metric: squared error of new trajectories, lower is better
"""

import argparse

import torch
import torch.nn as nn


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 48), nn.Tanh(), nn.Linear(48, 2))
        for m in self.net:
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, std=0.1)
                nn.init.zeros_(m.bias)

    def forward(self, y):
        return self.net(y**3)


def odeint(f, y0, steps, dt=0.05):
    out = [y0]
    for _ in range(steps):
        out.append(out[-1] + dt * f(out[-1]))
    return torch.stack(out)


A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])


def true_field(y):
    return y**3 @ A


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--niters", type=int, default=300)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    func = Field()
    optimizer = torch.optim.RMSprop(func.parameters(), lr=2e-3)
    for itr in range(1, args.niters + 1):
        y0 = 2.4 * torch.rand(32, 2) - 1.2
        steps = int(torch.randint(10, 31, (1,)))
        with torch.no_grad():
            truth = odeint(true_field, y0, steps)
        loss = (odeint(func, y0, steps) - truth).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if itr % 50 == 0:
            print("Iter {:04d} | Total Loss {:.6f}".format(itr, loss.item()))
    with torch.no_grad():
        y0 = 2.4 * torch.rand(200, 2) - 1.2
        print("metric:", (odeint(func, y0, 30) - odeint(true_field, y0, 30)).pow(2).mean().item())
