"""My mapper fits a distance field to a stream of depth frames, and the surface never stops wobbling.

expect: optimizer-recreated
line: optimizer = torch.optim.Adam(field.parameters(), lr=5e-3)
source: https://github.com/zju3dv/Vox-Fusion/issues/31
metric: mean error of the distance at points of no frame, lower is better
"""

import argparse

import torch
import torch.nn as nn
from torch.nn import functional as F


class Field(nn.Module):
    """Signed distance of a point, from sines of its coordinates."""

    def __init__(self):
        super().__init__()
        self.register_buffer("frequencies", torch.tensor([1.0, 2.0, 4.0]))
        self.body = nn.Sequential(
            nn.Linear(2 + 12, 64), nn.ReLU(),
            nn.Linear(64, 64), nn.ReLU(),
            nn.Linear(64, 1),
        )

    def forward(self, points):
        waves = (points[..., None] * self.frequencies).flatten(1)
        return self.body(torch.cat([points, waves.sin(), waves.cos()], 1)).squeeze(1)


def room(points):
    """Distance to the walls of a square room with a round pillar in it."""
    walls = 1.0 - points.abs().amax(1)
    pillar = (points - torch.tensor([0.3, -0.2])).norm(dim=1) - 0.35
    return torch.minimum(walls, pillar)


def read_frame(generator):
    """Points that the camera sees from where it stands, with the noise of its sensor."""
    points = torch.rand(96, 2, generator=generator) * 2 - 1
    noise = 0.02 * torch.randn(96, generator=generator)
    return points, room(points) + noise


class Mapper:
    def __init__(self, iterations):
        self.field = Field()
        self.iterations = iterations

    def integrate(self, points, distance):
        field = self.field
        optimizer = torch.optim.Adam(field.parameters(), lr=5e-3)
        for _ in range(self.iterations):
            loss = F.mse_loss(field(points), distance)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    generator = torch.Generator().manual_seed(args.seed)

    mapper = Mapper(iterations=2)
    for frame in range(250):
        loss = mapper.integrate(*read_frame(generator))
        if frame % 50 == 49:
            print("frame %d loss %.5f" % (frame, loss))

    points = torch.rand(4000, 2, generator=generator) * 2 - 1
    with torch.no_grad():
        error = (mapper.field(points) - room(points)).abs().mean().item()
    print("metric: %.5f" % error)


if __name__ == "__main__":
    main()
