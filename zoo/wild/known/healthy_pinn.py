"""A physics-informed network for a damped oscillator: no data at all, only the equation and the start.

expect: nothing
style: PINN, residual and initial conditions with their own weights, the same collocation points in every step (looks like a repeated batch)
"""

import argparse

import numpy as np
import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--iters", type=int, default=900)
args = parser.parse_args()
torch.manual_seed(args.seed)


class FCN(nn.Module):
    def __init__(self, n_in, n_out, n_hidden, n_layers):
        super().__init__()
        self.fcs = nn.Sequential(nn.Linear(n_in, n_hidden), nn.Tanh())
        self.fch = nn.Sequential(*[nn.Sequential(nn.Linear(n_hidden, n_hidden), nn.Tanh()) for _ in range(n_layers - 1)])
        self.fce = nn.Linear(n_hidden, n_out)

    def forward(self, x):
        return self.fce(self.fch(self.fcs(x)))


d, w0 = 0.4, 3.0
mu, k = 2 * d, w0**2
t_boundary = torch.zeros(1, 1, requires_grad=True)
t_physics = torch.linspace(0, 2.5, 40).view(-1, 1).requires_grad_(True)


def exact_solution(t):
    w = np.sqrt(w0**2 - d**2)
    phi = np.arctan(-d / w)
    A = 1 / (2 * np.cos(phi))
    return torch.exp(-d * t) * 2 * A * torch.cos(phi + w * t)


pinn = FCN(1, 1, 32, 3)
optimiser = torch.optim.Adam(pinn.parameters(), lr=3e-3)
for i in range(args.iters):
    optimiser.zero_grad()
    u = pinn(t_boundary)
    loss1 = (torch.squeeze(u) - 1) ** 2
    dudt = torch.autograd.grad(u, t_boundary, torch.ones_like(u), create_graph=True)[0]
    loss2 = (torch.squeeze(dudt) - 0) ** 2
    u = pinn(t_physics)
    dudt = torch.autograd.grad(u, t_physics, torch.ones_like(u), create_graph=True)[0]
    d2udt2 = torch.autograd.grad(dudt, t_physics, torch.ones_like(dudt), create_graph=True)[0]
    loss3 = torch.mean((d2udt2 + mu * dudt + k * u) ** 2)
    loss = loss1 + 0.1 * loss2 + 1e-2 * loss3
    loss.backward()
    optimiser.step()
    if i % 150 == 0:
        print(i, "loss", loss.item())

t_test = torch.linspace(0, 2.5, 200).view(-1, 1)
with torch.no_grad():
    print("metric: %.5f" % torch.mean((pinn(t_test) - exact_solution(t_test)) ** 2).item())
