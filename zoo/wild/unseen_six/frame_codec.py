"""An autoencoder of frames accumulates eight micro-batches, but zero_grad stands outside the condition, so only the last micro-batch of eight is learned from.

expect: gradient-wiped
line: optimizer.zero_grad()
source: https://github.com/gaozhihan/PreDiff/issues/32
metric: reconstruction error of held-out frames, lower is better
"""

import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Codec(nn.Module):
    def __init__(self, latent=8):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.SiLU(), nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.SiLU(),
            nn.Flatten(), nn.Linear(16 * 16, latent),
        )
        self.decoder = nn.Sequential(
            nn.Linear(latent, 16 * 16), nn.SiLU(), nn.Unflatten(1, (16, 4, 4)),
            nn.ConvTranspose2d(16, 8, 4, stride=2, padding=1), nn.SiLU(), nn.ConvTranspose2d(8, 1, 4, stride=2, padding=1),
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


def make_frames(n):
    """A blob that sits somewhere, with some width and brightness."""
    grid = torch.linspace(-1, 1, 16)
    cx, cy = torch.rand(2, n, 1, 1) * 1.4 - 0.7
    width = torch.rand(n, 1, 1) * 0.3 + 0.2
    light = torch.rand(n, 1, 1) * 0.5 + 0.5
    blob = light * torch.exp(-((grid[None, :, None] - cy) ** 2 + (grid[None, None] - cx) ** 2) / width**2)
    return blob.unsqueeze(1)


def get_parser():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--micro_batch_size", type=int, default=4)
    parser.add_argument("--accumulate", type=int, default=8)
    return parser


def main():
    args = get_parser().parse_args()
    torch.manual_seed(args.seed)
    train, test = make_frames(1280), make_frames(256)
    loader = DataLoader(TensorDataset(train), batch_size=args.micro_batch_size, shuffle=True)
    model = Codec()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(args.epochs):
        total = 0.0
        for i, (x,) in enumerate(loader):
            loss = (model(x) - x).pow(2).sum((1, 2, 3)).mean() / args.accumulate
            optimizer.zero_grad()
            loss.backward()
            total += loss.item() * args.accumulate
            if (i + 1) % args.accumulate == 0:
                optimizer.step()
        print(f"epoch {epoch} loss {total / len(loader):.4f}")
    with torch.no_grad():
        print("metric:", (model(test) - test).pow(2).sum((1, 2, 3)).mean().item())


if __name__ == "__main__":
    main()
