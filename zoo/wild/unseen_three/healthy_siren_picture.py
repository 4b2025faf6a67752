"""SIREN: a sine network remembers one picture; every step sees all pixels of a training lattice, the rest are for testing.

expect: nothing
style: invites 'repeated batch' and 'bad init scale': one full batch for ever is what an implicit representation is, and sin(30 x) with its special init is the method
"""
import argparse

import numpy as np
import torch
from torch import nn


class SineLayer(nn.Module):
    def __init__(self, fan_in, fan_out, is_first=False, omega=30.0):
        super().__init__()
        self.omega = omega
        self.linear = nn.Linear(fan_in, fan_out)
        with torch.no_grad():
            bound = 1 / fan_in if is_first else np.sqrt(6 / fan_in) / omega
            self.linear.weight.uniform_(-bound, bound)

    def forward(self, x):
        return torch.sin(self.omega * self.linear(x))


class Siren(nn.Module):
    def __init__(self, hidden=64, layers=2, omega=30.0):
        super().__init__()
        net = [SineLayer(2, hidden, is_first=True, omega=omega)]
        net += [SineLayer(hidden, hidden, omega=omega) for _ in range(layers)]
        final = nn.Linear(hidden, 1)
        with torch.no_grad():
            final.weight.uniform_(-np.sqrt(6 / hidden) / omega, np.sqrt(6 / hidden) / omega)
        self.net = nn.Sequential(*net, final)

    def forward(self, coords):
        return self.net(coords)


def picture(side, rng):
    axis = torch.linspace(-1, 1, side)
    yy, xx = torch.meshgrid(axis, axis, indexing="ij")
    img = torch.zeros(side, side)
    for _ in range(8):
        cx, cy = rng.uniform(-0.8, 0.8, 2)
        img += rng.uniform(-1, 1) * torch.exp(-((xx - cx) ** 2 + (yy - cy) ** 2) / rng.uniform(0.02, 0.15))
    img += 0.3 * torch.sin(9 * xx + 4 * yy)
    img = 2 * (img - img.min()) / (img.max() - img.min()) - 1
    return torch.stack([xx, yy], -1).reshape(-1, 2), img.reshape(-1, 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    coords, pixels = picture(64, np.random.default_rng(args.seed))
    lattice = torch.zeros(64, 64, dtype=torch.bool)
    lattice[::2] = True
    lattice = lattice.reshape(-1)
    model_input, ground_truth = coords[lattice], pixels[lattice]

    img_siren = Siren()
    optim = torch.optim.Adam(img_siren.parameters(), lr=5e-4)
    for step in range(args.steps):
        loss = ((img_siren(model_input) - ground_truth) ** 2).mean()
        if step % 80 == 0:
            print("Step %d, Total loss %0.6f" % (step, loss.item()))
        optim.zero_grad()
        loss.backward()
        optim.step()

    with torch.no_grad():
        mse = ((img_siren(coords[~lattice]) - pixels[~lattice]) ** 2).mean()
    print("metric: %.2f" % (10 * torch.log10(4 / mse)).item())
