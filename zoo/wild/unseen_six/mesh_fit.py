"""A mesh is fitted with a penalty on the lengths of its edges; flat spots have edges of length zero, and the root has no slope there.

expect: non-finite
line: return torch.sqrt((edge**2).sum(-1)).mean()
source: https://github.com/akanazawa/cmr/issues/11
metric: distance to the target mesh after training, lower is better
"""

import argparse
import math

import torch
import torch.nn as nn


class ShapePredictor(nn.Module):
    def __init__(self, n_vertices, code=3):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(code, 64), nn.ELU(), nn.Linear(64, 64), nn.ELU())
        self.delta = nn.Linear(64, n_vertices * 3)
        nn.init.zeros_(self.delta.weight)
        nn.init.zeros_(self.delta.bias)

    def forward(self, z):
        return self.delta(self.net(z)).view(len(z), -1, 3)


class DeformationReg(nn.Module):
    """Neighbours should move together."""

    def __init__(self, pairs):
        super().__init__()
        self.register_buffer("pairs", pairs)

    def forward(self, delta):
        edge = delta[:, self.pairs[:, 0]] - delta[:, self.pairs[:, 1]]
        return torch.sqrt((edge**2).sum(-1)).mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--iterations", type=int, default=800)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    n = 24
    angle = torch.arange(n) / n * 2 * math.pi
    mean_shape = torch.stack([angle.cos(), angle.sin(), torch.zeros(n)], 1)
    pairs = torch.stack([torch.arange(n), (torch.arange(n) + 1) % n], 1)

    def sample(batch):
        z = torch.rand(batch, 3)
        stretch = torch.stack([1 + z[:, 0], 1 - 0.5 * z[:, 1], torch.ones(batch)], 1)[:, None]
        shape = mean_shape * stretch
        shape = shape + torch.stack([torch.zeros(batch, n), torch.zeros(batch, n), z[:, 2:] * torch.sin(2 * angle)], 2)
        return z, shape

    model, regularise = ShapePredictor(n), DeformationReg(pairs)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for i in range(args.iterations):
        z, shape = sample(32)
        delta = model(z)
        loss = (mean_shape + delta - shape).pow(2).sum(-1).mean() + 0.01 * regularise(delta)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 100 == 0:
            print("iter", i, "loss", loss.item())
    with torch.no_grad():
        z, shape = sample(500)
        error = (mean_shape + model(z) - shape).pow(2).sum(-1).mean().item()
    print("metric:", error if math.isfinite(error) else 99.0)


if __name__ == "__main__":
    main()
