"""A direction in latent space is trained through a frozen generator and assessor; nobody clears its gradient.

expect: missing-zero-grad
line: loss.backward()
source: https://github.com/LoreGoetschalckx/GANalyze/issues/7
metric: mean squared error of the change in memorability, lower is better
"""

import argparse

import torch
import torch.nn as nn


class Generator(nn.Module):
    """Stands for a pretrained generator: fixed."""

    def __init__(self, dim_z=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim_z, 64), nn.Tanh(), nn.Linear(64, 100), nn.Tanh())

    def forward(self, z):
        return self.net(z)


class Assessor(nn.Module):
    """Stands for a pretrained MemNet: fixed."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(100, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, image):
        return self.net(image).squeeze(1)


class OneDirection(nn.Module):
    def __init__(self, dim_z=16):
        super().__init__()
        self.w = nn.Parameter(0.05 * torch.randn(1, dim_z))
        self.scale = nn.Linear(1, 1)

    def transform(self, z, step_sizes):
        return z + self.scale(step_sizes[:, None]) * self.w


def train(opts):
    torch.manual_seed(opts.seed)
    generator, assessor = Generator().eval().requires_grad_(False), Assessor().eval().requires_grad_(False)
    for p in (*generator.parameters(), *assessor.parameters()):
        p.mul_(2.5)
    transformation = OneDirection()
    optimizer = torch.optim.Adam(transformation.parameters(), lr=opts.lr, betas=(0.5, 0.9))
    for iteration in range(opts.iterations):
        z = torch.randn(opts.batch_size, 16)
        step_sizes = opts.alpha * (2 * torch.rand(opts.batch_size) - 1)
        out_scores = assessor(generator(z))
        target_scores = out_scores + step_sizes
        transformed = assessor(generator(transformation.transform(z, step_sizes)))
        loss = (target_scores - transformed).pow(2).mean()
        loss.backward()
        optimizer.step()
        if iteration % 50 == 0:
            print(f"[Iteration] {iteration:05d} [ loss: {loss.item():.4f} ]")
    with torch.no_grad():
        z = torch.randn(2000, 16)
        step_sizes = opts.alpha * (2 * torch.rand(2000) - 1)
        change = assessor(generator(transformation.transform(z, step_sizes))) - assessor(generator(z))
    return (change - step_sizes).pow(2).mean().item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--alpha", type=float, default=0.5)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--iterations", type=int, default=600)
    print("metric:", train(parser.parse_args()))
