"""The products of colour channels are computed in uint8 and wrap around at 256: most features are noise.

expect: integer-overflow
line: colours[:, 0] * colours[:, 2]
source: https://github.com/mahmoudnafifi/Deep_White_Balance/issues/15
metric: test mean absolute error in levels, lower is better
"""

import argparse

import numpy as np
import torch
from torch import nn


def render(n, rng):
    """Pixels of one camera as bytes, and what the reference camera saw."""
    rgb = rng.integers(0, 256, size=(n, 3))
    r, g, b = (rgb / 255.0).T
    out = np.stack([0.6 * r + 0.5 * r * g - 0.2 * b * b, 0.8 * g - 0.4 * g * b + 0.5 * r * r, 0.5 * b + 0.7 * r * g * b], axis=1)
    return rgb.astype(np.uint8), out * 255.0 + rng.normal(0, 1.0, size=(n, 3))


def kernel(colours):
    return np.stack(
        [
            colours[:, 0], colours[:, 1], colours[:, 2],
            colours[:, 0] * colours[:, 1], colours[:, 0] * colours[:, 2], colours[:, 1] * colours[:, 2],
            colours[:, 0] * colours[:, 0], colours[:, 1] * colours[:, 1], colours[:, 2] * colours[:, 2],
            colours[:, 0] * colours[:, 1] * colours[:, 2],
        ],
        axis=1,
    )


class ColourMap(nn.Module):
    def __init__(self, features, mean, std, target_mean, target_std):
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)
        self.register_buffer("target_mean", target_mean)
        self.register_buffer("target_std", target_std)
        self.linear = nn.Linear(features, 3)

    def forward(self, phi):
        return self.linear((phi - self.mean) / self.std)

    def levels(self, phi):
        return self(phi) * self.target_std + self.target_mean


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=1500)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)

    source, target = render(4000, rng)
    phi = torch.tensor(kernel(source), dtype=torch.float32)
    target = torch.tensor(target, dtype=torch.float32)
    model = ColourMap(phi.shape[1], phi.mean(0), phi.std(0), target.mean(0), target.std(0))
    wanted = (target - model.target_mean) / model.target_std
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(args.steps):
        pick = torch.randint(0, len(phi), (64,))
        loss = nn.functional.mse_loss(model(phi[pick]), wanted[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 300 == 0:
            print(f"step {step} loss {loss.item():.5f}")

    source, target = render(1000, rng)
    with torch.no_grad():
        predicted = model.levels(torch.tensor(kernel(source), dtype=torch.float32))
    print("metric:", (predicted - torch.tensor(target, dtype=torch.float32)).abs().mean().item())


if __name__ == "__main__":
    main()
