"""The VAE of a world model averages the squared error over all pixels but keeps the weight of the divergence: the code collapses.

expect: unbalanced-loss-terms
or: posterior-collapse
line: r_loss = (decoded - frames).pow(2).mean()
source: https://github.com/AppliedDataSciencePartners/WorldModels/issues/12
metric: squared error of reconstructions per frame, lower is better
"""

import argparse

import torch
import torch.nn as nn


def track(n, size=16):
    """Frames of a road that bends, with a car on it."""
    rows = torch.arange(size) / size
    bend, start, car = torch.rand(n, 1) * 8 - 4, torch.rand(n, 1) * 6 + 5, torch.rand(n, 1) * 2 - 1
    middle = start + bend * rows**2
    cols = torch.arange(size).view(1, 1, size)
    road = torch.sigmoid(2 * (2.5 - (cols - middle[:, :, None]).abs()))
    frames = 0.7 * road
    frames[:, 12:14] += 0.3 * torch.exp(-((cols - middle[:, 12:14, None] - car[:, :, None]) ** 2))
    return frames.unsqueeze(1)


class ConvVAE(nn.Module):
    def __init__(self, z=6):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(1, 12, 4, 2, 1), nn.ReLU(), nn.Conv2d(12, 24, 4, 2, 1), nn.ReLU(), nn.Flatten())
        self.mu, self.logvar = nn.Linear(384, z), nn.Linear(384, z)
        self.dec = nn.Sequential(nn.Linear(z, 384), nn.ReLU(), nn.Unflatten(1, (24, 4, 4)), nn.ConvTranspose2d(24, 12, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(12, 1, 4, 2, 1), nn.Sigmoid())

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h)
        return self.dec(mu + torch.randn_like(mu) * (0.5 * logvar).exp()), mu, logvar


def loss_of(decoded, frames, mu, logvar):
    r_loss = (decoded - frames).pow(2).mean()
    kl_loss = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).mean()
    return 10 * r_loss + kl_loss, r_loss, kl_loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    data, test = track(1600), track(300)
    vae = ConvVAE()
    optimizer = torch.optim.Adam(vae.parameters(), lr=2e-3)
    for epoch in range(args.epochs):
        for idx in torch.randperm(len(data)).split(32):
            loss, r_loss, kl_loss = loss_of(*((out := vae(data[idx]))[0], data[idx]), *out[1:])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"loss: {loss.item():.4f} - vae_r_loss: {r_loss.item():.4f} - vae_kl_loss: {kl_loss.item():.4e}")
    with torch.no_grad():
        mu = vae.mu(vae.enc(test))
        print("metric:", (vae.dec(mu) - test).pow(2).sum((1, 2, 3)).mean().item())


if __name__ == "__main__":
    main()
