"""A potential for clusters of five atoms, trained on energies and, through its derivative, on forces.

expect: nothing
style: second-order training (create_graph), energy and force terms of different weight, standardised energies
"""

import argparse

import torch
from torch import nn


class Potential(nn.Module):
    """Sum over pairs of a function of the distance, and over atoms of a function of their surroundings."""

    def __init__(self, basis=12, hidden=32):
        super().__init__()
        self.register_buffer("centres", torch.linspace(0.8, 3.5, basis))
        self.atom = nn.Sequential(nn.Linear(basis, hidden), nn.Softplus(), nn.Linear(hidden, hidden), nn.Softplus(), nn.Linear(hidden, 1))

    def forward(self, pos):
        n = pos.shape[1]
        i, j = torch.triu_indices(n, n, 1)
        r = (pos[:, i] - pos[:, j]).norm(dim=-1)
        g = torch.exp(-4 * (r[..., None] - self.centres) ** 2)
        env = torch.zeros(pos.shape[0], n, g.shape[-1]).index_add(1, i, g).index_add(1, j, g)
        return self.atom(env).sum((1, 2))


def morse(pos):
    i, j = torch.triu_indices(pos.shape[1], pos.shape[1], 1)
    r = (pos[:, i] - pos[:, j]).norm(dim=-1)
    return ((1 - torch.exp(-1.2 * (r - 1.5))) ** 2).sum(1)


def clusters(n):
    base = torch.tensor([[0.0, 0, 0], [1.5, 0, 0], [0, 1.5, 0], [0, 0, 1.5], [1.2, 1.2, 1.2]])
    pos = (base + 0.25 * torch.randn(n, 5, 3)).requires_grad_(True)
    energy = morse(pos)
    forces = -torch.autograd.grad(energy.sum(), pos)[0]
    return pos.detach(), energy.detach(), forces


def main(args):
    torch.manual_seed(args.seed)
    pos, energy, forces = clusters(800)
    shift, scale = energy.mean(), energy.std()
    model = Potential()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    for epoch in range(args.epochs):
        for rows in torch.randperm(len(pos)).split(32):
            x = pos[rows].clone().requires_grad_(True)
            e = model(x)
            f = -torch.autograd.grad(e.sum(), x, create_graph=True)[0]
            loss = nn.functional.mse_loss(e, (energy[rows] - shift) / scale) + 10 * nn.functional.mse_loss(f, forces[rows] / scale)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        if epoch % 2 == 0:
            print("epoch", epoch, "loss", loss.item())
    x, _, f_true = clusters(200)
    x = x.requires_grad_(True)
    f = -scale * torch.autograd.grad(model(x).sum(), x)[0]
    print("metric: %.4f" % ((f - f_true).pow(2).mean() / f_true.pow(2).mean()).item())


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--epochs", type=int, default=25)
    main(p.parse_args())
