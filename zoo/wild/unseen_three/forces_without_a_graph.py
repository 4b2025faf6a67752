"""autograd.grad without create_graph: the force term of the loss is a constant, and only the energies are learnt.

expect: term-without-gradient
or: call-without-effect
line: torch.autograd.grad(energy.sum(), positions, retain_graph=True)
source: https://github.com/facebookresearch/DomainBed/issues/50
metric: test root mean squared error of the forces, lower is better
"""

import argparse

import torch
import torch.nn as nn


def potential(p):
    x, y = p[:, 0], p[:, 1]
    return (x ** 2 - 1) ** 2 + 0.8 * y ** 2 + 0.5 * torch.sin(3 * x + 2 * y)


def reference(n):
    p = ((torch.rand(n, 2) - 0.5) * 3).requires_grad_(True)
    e = potential(p)
    f = -torch.autograd.grad(e.sum(), p)[0]
    return p.detach(), e.detach(), f.detach()


class EnergyNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, positions, training=True):
        positions = positions.detach().requires_grad_(True)
        energy = self.net(positions).squeeze(-1)
        gradient = torch.autograd.grad(energy.sum(), positions, retain_graph=True)[0]
        return energy, -gradient


class Fitter:
    def __init__(self, model, lr=2e-3, force_weight=1.0):
        self.model = model
        self.force_weight = force_weight
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)

    def step(self, p, e, f):
        energy, force = self.model(p)
        energy_loss = nn.functional.mse_loss(energy, e)
        force_loss = nn.functional.mse_loss(force, f)
        loss = energy_loss + self.force_weight * force_loss
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return energy_loss.item(), force_loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=1200)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    p, e, f = reference(60)
    fitter = Fitter(EnergyNet())
    for step in range(args.steps):
        pick = torch.randint(0, len(p), (30,))
        losses = fitter.step(p[pick], e[pick], f[pick])
        if step % 200 == 0:
            print(f"step {step}: energy {losses[0]:.4f} force {losses[1]:.4f}")
    p_test, _, f_test = reference(500)
    _, force = fitter.model(p_test, training=False)
    print("metric:", (force.detach() - f_test).pow(2).mean().sqrt().item())


if __name__ == "__main__":
    main()
