"""Class-conditional GAN on 8x8 digits with hinge loss, spectral norm and batch norm in the generator.

expect: nothing
style: embeddings for the label in both networks, fakes made once and detached for the discriminator, judged by a classifier trained on real digits
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from torch.nn.utils.parametrizations import spectral_norm


class G(nn.Module):
    def __init__(self, nz=16, ne=16, nh=128):
        super().__init__()
        self.nz = nz
        self.label = nn.Embedding(10, ne)
        self.main = nn.Sequential(
            nn.Linear(nz + ne, nh), nn.BatchNorm1d(nh), nn.ReLU(),
            nn.Linear(nh, nh), nn.BatchNorm1d(nh), nn.ReLU(),
            nn.Linear(nh, 64), nn.Tanh(),
        )

    def forward(self, z, y):
        return self.main(torch.cat([z, self.label(y)], 1))


class D(nn.Module):
    def __init__(self, nh=128):
        super().__init__()
        self.features = nn.Sequential(
            spectral_norm(nn.Linear(64, nh)), nn.LeakyReLU(0.2),
            spectral_norm(nn.Linear(nh, nh)), nn.LeakyReLU(0.2),
        )
        self.out = spectral_norm(nn.Linear(nh, 1))
        self.label = spectral_norm(nn.Embedding(10, nh))

    def forward(self, x, y):
        h = self.features(x)
        return self.out(h).squeeze(1) + (self.label(y) * h).sum(1)


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--seed", type=int, default=0)
    seed = cli.parse_args().seed
    torch.manual_seed(seed)
    data = load_digits()
    x = torch.tensor(data.data, dtype=torch.float32) / 8 - 1
    y = torch.tensor(data.target)
    judge = LogisticRegression(max_iter=200).fit(data.data / 8 - 1, data.target)

    g, d = G(), D()
    opt_g = torch.optim.Adam(g.parameters(), lr=1e-3, betas=(0.0, 0.9))
    opt_d = torch.optim.Adam(d.parameters(), lr=1e-3, betas=(0.0, 0.9))
    for it in range(1, 251):
        idx = torch.randint(0, len(x), (64,))
        labels = torch.randint(0, 10, (64,))
        fake = g(torch.randn(64, g.nz), labels)

        loss_d = F.relu(1 - d(x[idx], y[idx])).mean() + F.relu(1 + d(fake.detach(), labels)).mean()
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()

        loss_g = -d(fake, labels).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        if it % 50 == 0:
            print(f"[{it}] D {loss_d.item():.3f} G {loss_g.item():.3f}")

    g.eval()
    with torch.no_grad():
        labels = torch.arange(10).repeat(50)
        images = g(torch.randn(500, g.nz), labels)
    print(f"metric: {judge.score(images.numpy(), labels.numpy()):.4f}")


if __name__ == "__main__":
    main()
